//! Field managers by name: whose images may be replaced (the operator specification, section 6).

use belay_api::limits;
use serde::{Deserialize, Serialize};

/// The most managers that `take-over` may name.
const MAX_MANAGERS: usize = 20;

/// What is taken over once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Adopt {
    /// The image, from this manager while it holds this value.
    Image {
        /// The field manager.
        manager: String,
        /// The image string.
        value: String,
    },
    /// The target, from the operator with this Lease.
    Instance {
        /// Namespace and name of the Lease, `NAMESPACE/NAME`.
        lease: String,
    },
}

/// Whether a manager is a GitOps controller, which would put its own image back.
pub fn is_gitops(manager: &str) -> bool {
    // Argo CD's own managers all begin so; the name alone is what its older versions used.
    manager == "argocd"
        || manager.starts_with("argocd-")
        || matches!(manager, "kustomize-controller" | "helm-controller")
}

/// Whether a manager is a person's kubectl.
pub fn is_kubectl(manager: &str) -> bool {
    manager.starts_with("kubectl")
}

/// Reads `take-over`: a comma list of exact names.
pub(super) fn take_over(value: &str) -> Result<Vec<String>, String> {
    let mut managers: Vec<String> = Vec::new();
    for name in value.split(',').map(str::trim) {
        check_manager(name)?;
        if name.contains(['*', '?']) {
            return Err(format!("{name:?} is no exact name of a field manager"));
        }
        if is_kubectl(name) {
            return Err(format!("{name} is a person's tool; use adopt to take over once"));
        }
        if is_gitops(name) {
            return Err(format!("{name} is a GitOps controller and would put its image back"));
        }
        if managers.len() == MAX_MANAGERS {
            return Err(format!("more than {MAX_MANAGERS} managers"));
        }
        if !managers.iter().any(|one| one == name) {
            managers.push(name.to_owned());
        }
    }
    Ok(managers)
}

/// Reads `adopt`: `MANAGER=VALUE` or `instance=NAMESPACE/NAME`.
pub(super) fn adopt(value: &str) -> Result<Adopt, String> {
    let expected = || "expected MANAGER=IMAGE or instance=NAMESPACE/NAME".to_owned();
    let (manager, value) = value.split_once('=').ok_or_else(expected)?;
    if manager == "instance" {
        let is_name = |name: &str| {
            belay_api::names::is_dns1123_subdomain(name) && name.len() <= limits::OBJECT_NAME
        };
        return match value.split_once('/') {
            Some((namespace, name)) if is_name(namespace) && is_name(name) => {
                Ok(Adopt::Instance { lease: value.to_owned() })
            }
            _ => Err(expected()),
        };
    }
    check_manager(manager)?;
    if value.is_empty() || value.chars().count() > limits::IMAGE {
        return Err(expected());
    }
    Ok(Adopt::Image { manager: manager.to_owned(), value: value.to_owned() })
}

fn check_manager(name: &str) -> Result<(), String> {
    let is_printable = |c: char| !c.is_control() && !c.is_whitespace();
    match name.chars().count() {
        0 => Err("a field manager's name is empty".to_owned()),
        length if length > limits::FIELD_MANAGER => {
            Err(format!("a field manager's name is longer than {}", limits::FIELD_MANAGER))
        }
        _ if !name.chars().all(is_printable) => {
            Err("a field manager's name has blanks or control characters".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("argocd-controller", true)]
    #[case("argocd-application-controller", true)]
    #[case("argocd", true)]
    #[case("argocdish", false)]
    #[case("kustomize-controller", true)]
    #[case("helm-controller", true)]
    #[case("helm", false)]
    fn gitops_controllers_are_known(#[case] manager: &str, #[case] expected: bool) {
        assert_eq!(is_gitops(manager), expected);
    }

    #[rstest]
    #[case("spinnaker", &["spinnaker"])]
    #[case("spinnaker, jenkins,spinnaker", &["spinnaker", "jenkins"])]
    #[case("helm", &["helm"])]
    fn managers_are_taken_over_by_name(#[case] value: &str, #[case] expected: &[&str]) {
        assert_eq!(take_over(value).unwrap(), expected);
    }

    #[rstest]
    #[case("")]
    #[case("a,,b")]
    #[case("kubectl")]
    #[case("kubectl-edit")]
    #[case("kubectl-client-side-apply")]
    #[case("argocd-controller")]
    #[case("helm,kustomize-controller")]
    #[case("helm-controller")]
    #[case("*")]
    #[case("spinn*")]
    #[case("two words")]
    #[case("a\u{7}")]
    #[case(&"a".repeat(129))]
    #[case(&(0..21).map(|n| format!("m{n}")).collect::<Vec<_>>().join(","))]
    fn persons_gitops_and_patterns_are_refused(#[case] value: &str) {
        take_over(value).unwrap_err();
    }

    #[rstest]
    #[case("kubectl-edit=ghcr.io/acme/web:1", "kubectl-edit", "ghcr.io/acme/web:1")]
    #[case("m=a=b", "m", "a=b")]
    #[case("Instance=x", "Instance", "x")]
    fn an_image_is_adopted_from_a_manager(
        #[case] text: &str,
        #[case] manager: &str,
        #[case] value: &str,
    ) {
        let expected = Adopt::Image { manager: manager.to_owned(), value: value.to_owned() };
        assert_eq!(adopt(text).unwrap(), expected);
    }

    #[test]
    fn a_target_is_adopted_from_an_operator() {
        let expected = Adopt::Instance { lease: "ops/belay".to_owned() };
        assert_eq!(adopt("instance=ops/belay").unwrap(), expected);
    }

    #[rstest]
    #[case("")]
    #[case("true")]
    #[case("=x")]
    #[case("m=")]
    #[case("instance=")]
    #[case("instance=ops")]
    #[case("instance=ops/")]
    #[case("instance=ops/a/b")]
    #[case("two words=x")]
    #[case(&format!("m={}", "a".repeat(1025)))]
    fn anything_else_adopts_nothing(#[case] text: &str) {
        adopt(text).unwrap_err();
    }
}
