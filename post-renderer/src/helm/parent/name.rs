//! Which programs are Helms.

/// The last part of a path, without `.exe`.
pub(super) fn base(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Whether a program of this base name is a Helm: `helm`, and what people rename it to in order to
/// have several (`helm3`, `helm-v3.22.0`, `helm-linux-amd64`), but none of the tools and plugins
/// whose names begin alike.
pub(super) fn is_helm(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("helm") else { return false };
    let mut parts = rest.split(['-', '_']);
    // Joined to the word itself only a version can be.
    let first = parts.next().unwrap_or_default();
    (first.is_empty() || is_version(first)) && parts.all(|part| is_version(part) || is_build(part))
}

/// `3`, `v3`, `3.22.0`, `v4.0.0+build5`.
fn is_version(part: &str) -> bool {
    let numbers = part.split_once('+').map_or(part, |(numbers, _)| numbers);
    let numbers = numbers.strip_prefix('v').unwrap_or(numbers);
    numbers
        .split('.')
        .all(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// A platform or a pre-release, as in the names of Helm's own downloads.
fn is_build(part: &str) -> bool {
    const PLATFORMS: [&str; 16] = [
        "linux", "darwin", "windows", "freebsd", "macos", "amd64", "arm64", "arm", "armv7", "386",
        "i386", "x86", "ppc64le", "s390x", "riscv64", "loong64",
    ];
    let stage = part.split_once('.').map_or(part, |(stage, _)| stage);
    PLATFORMS.contains(&part) || ["alpha", "beta", "rc"].contains(&stage)
}
