//! What the system says about a process, and the API server about writes.

use std::fs;

use anyhow::{Context as _, Result};
use kube::Client;

/// Kinds that the operator writes at all; its Lease, which is renewed, is not among them.
const WRITTEN: [&str; 5] = ["deployments", "releases", "rollbacks", "releasetargets", "events"];
const WRITES: [&str; 6] = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];

/// Resident memory of a process, in bytes.
pub(super) fn resident(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024.0)
}

/// The time that a process was on a processor, in ticks of 10 ms.
pub(super) fn ticks(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = text.rsplit_once(')').context("a stat without a name")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field =
        |index: usize| -> Result<f64> { Ok(fields.get(index).context("a short stat")?.parse()?) };
    Ok(field(11)? + field(12)?)
}

/// How many writes of the kinds that the operator writes the API server has answered.
pub(super) async fn writes(client: &Client) -> Result<f64> {
    let mut request = http::Request::new(Vec::new());
    *request.uri_mut() = "/metrics".parse()?;
    let text = client.request_text(request).await.context("read the API server's metrics")?;
    Ok(count(&text))
}

fn count(metrics: &str) -> f64 {
    let of_writes = |line: &&str| {
        let has = |label: &str, values: &[&str]| {
            values.iter().any(|value| line.contains(&format!("{label}=\"{value}\"")))
        };
        line.starts_with("apiserver_request_total{")
            && has("verb", &WRITES)
            && has("resource", &WRITTEN)
            && !line.contains("subresource=\"scale\"")
    };
    let value = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
    metrics.lines().filter(of_writes).filter_map(value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_counted_and_reads_and_leases_are_not() {
        let metrics = "\
# HELP apiserver_request_total Counter of requests\n\
apiserver_request_total{code=\"200\",resource=\"deployments\",subresource=\"\",verb=\"PATCH\"} 3\n\
apiserver_request_total{code=\"200\",resource=\"releases\",subresource=\"status\",verb=\"PUT\"} 4\n\
apiserver_request_total{code=\"200\",resource=\"releases\",subresource=\"\",verb=\"LIST\"} 50\n\
apiserver_request_total{code=\"200\",resource=\"leases\",subresource=\"\",verb=\"PUT\"} 60\n\
apiserver_request_duration_count{resource=\"deployments\",verb=\"PATCH\"} 70\n";
        assert!((count(metrics) - 7.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_process_has_memory_and_time() {
        let own = std::process::id();
        assert!(resident(own).unwrap() > 1e5);
        assert!(ticks(own).unwrap() >= 0.0);
    }
}
