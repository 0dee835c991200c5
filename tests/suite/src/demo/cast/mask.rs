//! What two demos do not have in common: times, ages, ports, digests, and the hashes in names.

/// The port that stands in the recording for every port of this machine.
const PORT: &str = "5000";

const LOOPBACK: &str = "127.0.0.1:";

/// Phases of a Rollback that are passed so quickly that a watch may miss one.
const PASSING: [&str; 3] = ["Pending", "Queued", "DeploymentTriggered"];

/// The release whose image does not run, as its tag ends.
const BROKEN: &str = "crash-loop";

/// A line as the recording has it: ports say nothing to a reader, and are others each time.
pub(super) fn told(line: &str) -> String {
    let mut told = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(LOOPBACK) {
        let number = after.find(|next: char| !next.is_ascii_digit()).unwrap_or(after.len());
        told.push_str(before);
        told.push_str(LOOPBACK);
        told.push_str(PORT);
        rest = &after[number..];
    }
    told.push_str(rest);
    told
}

/// Lines as they are compared.
pub(super) fn masked(lines: &[String]) -> Vec<String> {
    lines.iter().filter_map(|line| mask(line)).collect()
}

/// A line with every word masked and one blank between two; none for what a watch may miss.
fn mask(line: &str) -> Option<String> {
    let line = told(line);
    let mut words: Vec<String> = line.split_whitespace().map(word).collect();
    if words.first().is_some_and(|first| first == "TIME")
        && words.get(2).is_some_and(|phase| PASSING.contains(&phase.as_str()))
    {
        return None;
    }
    // "2.4 s"
    for at in 1..words.len() {
        if words[at] == "s" && is_number(&words[at - 1]) {
            "TIME".clone_into(&mut words[at - 1]);
        }
    }
    let is_row = words.first().is_some_and(|name| name == "web-HASH");
    if is_row && words.len() > 5 {
        // WHEN and TOOK: what took no whole second has none.
        for column in &mut words[3..5] {
            "TIME".clone_into(column);
        }
    }
    if let Some(took) = words.iter().position(|word| word == "took") {
        words.drain(took..words.len().min(took + 2));
    }
    // A crash or the deadline ends the broken release: which is first, is a matter of luck.
    if words.iter().any(|word| word.ends_with(BROKEN)) {
        let cause = words.iter().position(|word| word == "pod" || word == "no");
        words.truncate(cause.unwrap_or(words.len()));
    }
    // How far a rollout is while the line is written.
    if words.get(1).is_some_and(|word| word == "health") {
        words.pop();
        words.push("PHASE".to_owned());
    }
    // Pods come and go while the line is written.
    if words.iter().any(|word| word == "updated,") || words.iter().any(|word| word == "status") {
        for one in words.iter_mut().filter(|one| is_number(one)) {
            "N".clone_into(one);
        }
    }
    Some(words.join(" "))
}

/// A word without what is another one each time; signs around it stay.
fn word(word: &str) -> String {
    let is_sign = |next: char| !next.is_alphanumeric();
    let start = word.find(|next| !is_sign(next)).unwrap_or(word.len());
    let end = word.trim_end_matches(is_sign).len().max(start);
    let (before, core, after) = (&word[..start], &word[start..end], &word[end..]);
    let core = if is_duration(core) || is_time(core) {
        "TIME".to_owned()
    } else if core.starts_with("sha256:") {
        "sha256:DIGEST".to_owned()
    } else if let Some(at) = core.rfind("web-") {
        format!("{}{}", &core[..at], named(&core[at..]))
    } else {
        core.to_owned()
    };
    format!("{before}{core}{after}")
}

/// A name with its hashes masked: of a Release, a Rollback or a pod.
fn named(name: &str) -> String {
    let is_hash = |part: &str| {
        let plain = part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        plain && matches!(part.len(), 5 | 7..=10)
    };
    let parts = name.split('-').map(|part| if is_hash(part) { "HASH" } else { part });
    parts.collect::<Vec<_>>().join("-")
}

fn is_number(word: &str) -> bool {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain && word.starts_with(|first: char| first.is_ascii_digit())
}

/// `59s`, `2m26s`, `1h`.
fn is_duration(word: &str) -> bool {
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = rest[digits..].bytes().take_while(u8::is_ascii_alphabetic).count();
        if digits == 0 || !["ms", "s", "m", "h", "d"].contains(&&rest[digits..digits + unit]) {
            return false;
        }
        rest = &rest[digits + unit..];
    }
    !word.is_empty()
}

/// `2026-12-01T00:08:04Z`.
fn is_time(word: &str) -> bool {
    word.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::port("app  127.0.0.1:15305/web:1.0.0", "app 127.0.0.1:5000/web:1.0.0")]
    #[case::age("Ready ✔  (since 0s)", "Ready ✔ (since TIME)")]
    #[case::long_age("for 2m26s, 1h.", "for TIME, TIME.")]
    #[case::seconds("all of it in 157 s", "all of it in TIME s")]
    #[case::digest("@sha256:aded…f0 found", "@sha256:DIGEST found")]
    #[case::release("(web-55a3729 → web-c9a52c1, ran 3s)", "(web-HASH → web-HASH, ran TIME)")]
    #[case::rollback(
        "rollback.belay.dev/web-55a3729-to-c9a52c1 created",
        "rollback.belay.dev/web-HASH-to-HASH created"
    )]
    #[case::row(
        "web-e381dea  web:1.4.0  active  2s  -  GitHub v1.4.0  -",
        "web-HASH web:1.4.0 active TIME TIME GitHub v1.4.0 -"
    )]
    #[case::crash(
        "web-9e47826  web:1.2.0_crash-loop  blocked  43s  -  GitHub v1.2.0+crash-loop  pod web-79b6c68b88-ckqdg app",
        "web-HASH web:1.2.0_crash-loop blocked TIME TIME GitHub v1.2.0+crash-loop"
    )]
    #[case::deadline(
        "✖ rollout  RolledBack: 1.2.0_crash-loop failed: no progress for 1m: 1 of 3 pods",
        "✖ rollout RolledBack: 1.2.0_crash-loop failed:"
    )]
    #[case::took(
        "1.3.0 → 1.1.0   8s ago   took 5s   by release",
        "1.3.0 → 1.1.0 TIME ago by release"
    )]
    #[case::pods("– rollout  2 of 3 updated, 3 available", "– rollout N of N updated, N available")]
    #[case::time(
        "2026-12-01T00:08:07Z shop/web DeploymentSucceeded",
        "TIME shop/web DeploymentSucceeded"
    )]
    #[case::versions(
        "▸ acme/web publishes v1.2.0+crash-loop.",
        "▸ acme/web publishes v1.2.0+crash-loop."
    )]
    #[case::words("  3 pods; 1.1.0 still runs", "3 pods; 1.1.0 still runs")]
    fn what_changes_is_masked_and_nothing_else(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(mask(line).as_deref(), Some(expected));
    }

    #[test]
    fn phases_that_a_watch_may_miss_are_left_out() {
        assert_eq!(mask("  2026-12-01T00:08:04Z shop/web Queued from v1.3.0 to v1.1.0"), None);
        assert_eq!(mask("Queued from v1.3.0").as_deref(), Some("Queued from v1.3.0"));
    }

    #[test]
    fn the_recording_names_one_port() {
        let line = "helm put 127.0.0.1:1234/web back, 127.0.0.1:99";
        assert_eq!(told(line), "helm put 127.0.0.1:5000/web back, 127.0.0.1:5000");
    }
}
