//! From the operator's pod to the command of a process. Pure; free ports are handed in.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, EnvVar, PodSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::mounts::Mounts;

/// The flag with the address of the probes.
const HEALTH: &str = "--health-bind";

/// The flag with the address of the admin port.
const ADMIN: &str = "--admin-bind";

/// What is started in place of a container.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HostCommand {
    /// The name of the program, as the container's command says it.
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    /// Where it listens; a pod that runs to its end listens nowhere.
    pub(super) addresses: Option<Addresses>,
}

/// Addresses on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addresses {
    /// What a kubelet would ask for readiness.
    pub(super) ready_url: String,
    /// `http://HOST:PORT` of the admin port.
    pub(super) admin_url: String,
}

impl HostCommand {
    /// The command of the one container of `pod`. The error says what of it has no counterpart here.
    pub(super) fn of(
        pod: &PodSpec,
        namespace: &str,
        mounts: &Mounts,
        port: &mut dyn FnMut() -> Result<u16, String>,
    ) -> Result<Self, String> {
        let [container] = pod.containers.as_slice() else {
            return Err(format!("it has {} containers, not one", pod.containers.len()));
        };
        if pod.init_containers.iter().flatten().next().is_some() {
            return Err("it has init containers".to_owned());
        }
        let mut words = container.command.iter().flatten().chain(container.args.iter().flatten());
        let program = words.next().ok_or("its container has no command")?.clone();
        let mut args: Vec<String> = words.map(|word| mounts.on_host(word)).collect();
        let addresses = if pod.restart_policy.as_deref() == Some("Never") {
            None
        } else {
            let (probed, health) = rebind(&mut args, HEALTH, port)?;
            let (_, admin) = rebind(&mut args, ADMIN, port)?;
            Some(Addresses {
                ready_url: format!("http://{health}{}", readiness_path(container, &probed)?),
                admin_url: format!("http://{admin}"),
            })
        };
        let env = variables(pod, container, namespace, mounts)?;
        Ok(Self { program, args, env, addresses })
    }
}

/// Moves one address to a free port of this host; returns what it was and what it is.
fn rebind(
    args: &mut [String],
    flag: &str,
    port: &mut dyn FnMut() -> Result<u16, String>,
) -> Result<(String, String), String> {
    for arg in args {
        let Some(old) = arg.strip_prefix(flag).and_then(|rest| rest.strip_prefix('=')) else {
            continue;
        };
        let (old, new) = (old.to_owned(), format!("127.0.0.1:{}", port()?));
        *arg = format!("{flag}={new}");
        return Ok((old, new));
    }
    Err(format!("it has no argument {flag}=HOST:PORT, so the program would listen on a fixed port"))
}

/// The path of the readiness probe, if a kubelet would reach `address` by it.
fn readiness_path(container: &Container, address: &str) -> Result<String, String> {
    let probe = container.readiness_probe.as_ref().and_then(|probe| probe.http_get.as_ref());
    let probe = probe.ok_or("it has no readiness probe by HTTP")?;
    let port = match &probe.port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let ports = container.ports.iter().flatten();
            let mut named = ports.filter(|port| port.name.as_ref() == Some(name));
            let named = named.next().map(|port| port.container_port);
            named.ok_or_else(|| {
                format!("its readiness probe asks port {name}, which is not there")
            })?
        }
    };
    // A program that listens on loopback cannot be probed from outside of its pod.
    let (host, listens) = address.rsplit_once(':').unwrap_or((address, ""));
    if host.starts_with("127.") || listens != port.to_string() {
        return Err(format!(
            "its readiness probe asks port {port}, and the program listens on {address}"
        ));
    }
    let path = probe.path.as_deref().unwrap_or_default();
    Ok(format!("/{}", path.trim_start_matches('/')))
}

fn variables(
    pod: &PodSpec,
    container: &Container,
    namespace: &str,
    mounts: &Mounts,
) -> Result<BTreeMap<String, String>, String> {
    if container.env_from.iter().flatten().next().is_some() {
        return Err("its container has envFrom".to_owned());
    }
    let variable = |variable: &EnvVar| {
        let name = variable.name.clone();
        let Some(source) = &variable.value_from else {
            return Ok((name, mounts.on_host(variable.value.as_deref().unwrap_or_default())));
        };
        let field = source.field_ref.as_ref().map(|field| field.field_path.as_str());
        match field {
            Some("metadata.namespace") => Ok((name, namespace.to_owned())),
            Some("spec.serviceAccountName") => {
                Ok((name, pod.service_account_name.clone().unwrap_or_default()))
            }
            _ => Err(format!("its variable {name} comes from a source that is not known here")),
        }
    };
    container.env.iter().flatten().map(variable).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn pod() -> Value {
        json!({ "serviceAccountName": "account", "containers": [{
            "name": "operator",
            "command": ["belay-operator"],
            "args": ["run", "--health-bind=0.0.0.0:8080", "--admin-bind=127.0.0.1:8081",
                     "--github-token-file=/etc/belay/github/token", "--other=/etc/belay/github-not"],
            "env": [
                { "name": "PLAIN", "value": "/etc/belay/github" },
                { "name": "NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } },
                { "name": "ACCOUNT", "valueFrom": { "fieldRef": { "fieldPath": "spec.serviceAccountName" } } },
                { "name": "EMPTY" },
            ],
            "ports": [{ "name": "health", "containerPort": 8080 }],
            "readinessProbe": { "httpGet": { "path": "/readyz", "port": "health" } },
        }]})
    }

    fn host(pod: Value) -> Result<HostCommand, String> {
        let pod: PodSpec = serde_json::from_value(pod).unwrap();
        let mounts = Mounts::of([("/etc/belay/github", "/run/x")]);
        let mut next = 9000;
        let mut port = || {
            next += 1;
            Ok(next)
        };
        HostCommand::of(&pod, "shop", &mounts, &mut port)
    }

    #[test]
    fn only_addresses_and_mounts_are_changed() {
        let host = host(pod()).unwrap();
        assert_eq!(host.program, "belay-operator");
        assert_eq!(
            host.args,
            [
                "run",
                "--health-bind=127.0.0.1:9001",
                "--admin-bind=127.0.0.1:9002",
                "--github-token-file=/run/x/token",
                "--other=/etc/belay/github-not"
            ]
        );
        let env: Vec<_> = host.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            env,
            [("ACCOUNT", "account"), ("EMPTY", ""), ("NAMESPACE", "shop"), ("PLAIN", "/run/x")]
        );
        let addresses = host.addresses.unwrap();
        assert_eq!(addresses.ready_url, "http://127.0.0.1:9001/readyz");
        assert_eq!(addresses.admin_url, "http://127.0.0.1:9002");
    }

    #[test]
    fn a_pod_that_runs_to_its_end_needs_no_addresses() {
        let pod = json!({ "restartPolicy": "Never", "containers": [{
            "name": "job", "command": ["belay-operator"], "args": ["do", "--it"],
        }]});
        let host = host(pod).unwrap();
        assert_eq!((host.args, host.addresses), (vec!["do".to_owned(), "--it".to_owned()], None));
    }

    #[rstest]
    #[case::two_containers("/containers/1", json!({ "name": "other" }), "2 containers")]
    #[case::init("/initContainers", json!([{ "name": "init" }]), "init containers")]
    #[case::no_bind("/containers/0/args/1", json!("--x"), "--health-bind=HOST:PORT")]
    #[case::no_admin("/containers/0/args/2", json!("--x"), "--admin-bind=HOST:PORT")]
    #[case::other_port("/containers/0/args/1", json!("--health-bind=0.0.0.0:8082"), "listens on 0.0.0.0:8082")]
    #[case::loopback("/containers/0/args/1", json!("--health-bind=127.0.0.1:8080"), "listens on 127.0.0.1:8080")]
    #[case::no_such_port("/containers/0/ports", json!([]), "asks port health")]
    #[case::no_probe("/containers/0/readinessProbe", json!({}), "no readiness probe")]
    #[case::env_from("/containers/0/envFrom", json!([{ "prefix": "A" }]), "envFrom")]
    #[case::source("/containers/0/env/3", json!({ "name": "S", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }), "variable S")]
    fn what_has_no_counterpart_is_an_error(
        #[case] at: &str,
        #[case] value: Value,
        #[case] says: &str,
    ) {
        let mut pod = pod();
        let (parent, key) = at.rsplit_once('/').unwrap();
        match pod.pointer_mut(parent).unwrap() {
            Value::Array(items) => {
                let index: usize = key.parse().unwrap();
                if index == items.len() { items.push(value) } else { items[index] = value }
            }
            object => object[key] = value,
        }
        let error = host(pod).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}
