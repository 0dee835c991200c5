//! What the API server's schema says about the lists and maps of a Deployment, as far as
//! ownership depends on it (`x-kubernetes-list-type`, `x-kubernetes-map-type`, Kubernetes 1.37).
//!
//! `managedFields` alone does not tell an atomic list, which has one owner as a whole, from a map
//! that was empty when it was written. Where this table is silent, the other entries decide.

use crate::Element;

/// Which table to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schema {
    /// A Deployment. It also fits other workloads where they have the same fields at the same
    /// place.
    #[default]
    Deployment,
    /// Any object: only `metadata` is known.
    Metadata,
}

/// How ownership works below a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structure {
    /// Every field or map key has owners of its own.
    Granular,
    /// One owner for the whole.
    Atomic,
    /// A list whose items are named by these fields; each item has owners.
    Associative(&'static [&'static str]),
    /// A list of distinct scalars; each has owners.
    Set,
}

/// The type of a field.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) structure: Structure,
    fields: &'static [(&'static str, &'static Self)],
    item: Option<&'static Self>,
}

impl Type {
    /// The type one step below; `None` where nothing is known.
    pub(crate) fn step(&self, element: &Element) -> Option<&'static Self> {
        match element {
            Element::Field(name) => self.field(name),
            Element::Key(_) | Element::Value(_) | Element::Index(_) => self.item,
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&'static Self> {
        self.fields.iter().find_map(|(own, field)| (*own == name).then_some(*field))
    }

    pub(crate) fn item(&self) -> Option<&'static Self> {
        self.item
    }
}

impl Schema {
    pub(crate) fn root(self) -> &'static Type {
        match self {
            Self::Deployment => &DEPLOYMENT,
            Self::Metadata => &OBJECT,
        }
    }

    pub(crate) fn type_at(self, path: &[Element]) -> Option<&'static Type> {
        path.iter().try_fold(self.root(), Type::step)
    }

    /// What is known of the field at a path.
    pub fn structure_at(self, path: &[Element]) -> Option<Structure> {
        self.type_at(path).map(|found| found.structure)
    }
}

/// Fields that the API server never tracks: it removes them before it compares.
pub(crate) fn is_untracked(path: &[Element]) -> bool {
    let [Element::Field(first), rest @ ..] = path else { return false };
    match (first.as_ref(), rest) {
        ("apiVersion" | "kind", _) => true,
        ("metadata", [Element::Field(second), ..]) => UNTRACKED_METADATA.contains(&second.as_ref()),
        _ => false,
    }
}

const UNTRACKED_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// The value that the API server gives a key field that is left out.
pub(crate) fn default_of_key(name: &str) -> Option<&'static str> {
    (name == "protocol").then_some("TCP")
}

type Fields = &'static [(&'static str, &'static Type)];

const fn granular(fields: Fields) -> Type {
    Type { structure: Structure::Granular, fields, item: None }
}

const fn list(keys: &'static [&'static str], item: &'static Type) -> Type {
    Type { structure: Structure::Associative(keys), fields: &[], item: Some(item) }
}

/// A granular map or a struct of which nothing more is known.
static MAP: Type = granular(&[]);
static ATOMIC: Type = Type { structure: Structure::Atomic, fields: &[], item: None };
static SET: Type = Type { structure: Structure::Set, fields: &[], item: None };
static OWNERS: Type = list(&["uid"], &ATOMIC);
static NAMED: Type = list(&["name"], &MAP);

static METADATA: Type = granular(&[
    ("annotations", &MAP),
    ("finalizers", &SET),
    ("labels", &MAP),
    ("ownerReferences", &OWNERS),
]);
static OBJECT: Type = granular(&[("metadata", &METADATA)]);

static DEPLOYMENT: Type =
    granular(&[("metadata", &METADATA), ("spec", &SPEC), ("status", &STATUS)]);
static SPEC: Type =
    granular(&[("selector", &ATOMIC), ("strategy", &STRATEGY), ("template", &TEMPLATE)]);
static STRATEGY: Type = granular(&[("rollingUpdate", &MAP)]);
static STATUS: Type = granular(&[("conditions", &CONDITIONS)]);
static CONDITIONS: Type = list(&["type"], &MAP);
static TEMPLATE: Type = granular(&[("metadata", &METADATA), ("spec", &POD)]);

static POD: Type = granular(&[
    ("affinity", &AFFINITY),
    ("containers", &CONTAINERS),
    ("dnsConfig", &DNS),
    ("ephemeralContainers", &CONTAINERS),
    ("hostAliases", &HOST_ALIASES),
    ("imagePullSecrets", &PULL_SECRETS),
    ("initContainers", &CONTAINERS),
    ("nodeSelector", &ATOMIC),
    ("overhead", &MAP),
    ("readinessGates", &ATOMIC),
    ("resourceClaims", &NAMED),
    ("resources", &RESOURCES),
    ("schedulingGates", &NAMED),
    ("securityContext", &POD_SECURITY),
    ("tolerations", &ATOMIC),
    ("topologySpreadConstraints", &SPREAD),
    ("volumes", &VOLUMES),
]);
static AFFINITY: Type = granular(&[
    ("nodeAffinity", &NODE_AFFINITY),
    ("podAffinity", &POD_AFFINITY),
    ("podAntiAffinity", &POD_AFFINITY),
]);
static NODE_AFFINITY: Type = granular(&[
    ("preferredDuringSchedulingIgnoredDuringExecution", &ATOMIC),
    ("requiredDuringSchedulingIgnoredDuringExecution", &ATOMIC),
]);
static POD_AFFINITY: Type = granular(&[
    ("preferredDuringSchedulingIgnoredDuringExecution", &ATOMIC),
    ("requiredDuringSchedulingIgnoredDuringExecution", &ATOMIC),
]);
static DNS: Type =
    granular(&[("nameservers", &ATOMIC), ("options", &ATOMIC), ("searches", &ATOMIC)]);
static HOST_ALIASES: Type = list(&["ip"], &HOST_ALIAS);
static HOST_ALIAS: Type = granular(&[("hostnames", &ATOMIC)]);
static PULL_SECRETS: Type = list(&["name"], &ATOMIC);
static POD_SECURITY: Type = granular(&[("supplementalGroups", &ATOMIC), ("sysctls", &ATOMIC)]);
static SPREAD: Type = list(&["topologyKey", "whenUnsatisfiable"], &SPREAD_CONSTRAINT);
static SPREAD_CONSTRAINT: Type =
    granular(&[("labelSelector", &ATOMIC), ("matchLabelKeys", &ATOMIC)]);
static VOLUMES: Type = list(&["name"], &VOLUME);
static VOLUME: Type = granular(&[
    ("configMap", &VOLUME_FILES),
    ("csi", &VOLUME_CSI),
    ("downwardAPI", &VOLUME_FILES),
    ("emptyDir", &MAP),
    ("projected", &VOLUME_PROJECTED),
    ("secret", &VOLUME_FILES),
]);
static VOLUME_FILES: Type = granular(&[("items", &ATOMIC)]);
static VOLUME_CSI: Type =
    granular(&[("nodePublishSecretRef", &ATOMIC), ("volumeAttributes", &MAP)]);
static VOLUME_PROJECTED: Type = granular(&[("sources", &ATOMIC)]);

static CONTAINERS: Type = list(&["name"], &CONTAINER);
static CONTAINER: Type = granular(&[
    ("args", &ATOMIC),
    ("command", &ATOMIC),
    ("env", &ENV),
    ("envFrom", &ATOMIC),
    ("lifecycle", &LIFECYCLE),
    ("livenessProbe", &PROBE),
    ("ports", &PORTS),
    ("readinessProbe", &PROBE),
    ("resizePolicy", &ATOMIC),
    ("resources", &RESOURCES),
    ("restartPolicyRules", &ATOMIC),
    ("securityContext", &SECURITY),
    ("startupProbe", &PROBE),
    ("volumeDevices", &DEVICES),
    ("volumeMounts", &MOUNTS),
]);
static ENV: Type = list(&["name"], &ENV_VAR);
static ENV_VAR: Type = granular(&[("valueFrom", &VALUE_FROM)]);
static VALUE_FROM: Type = granular(&[
    ("configMapKeyRef", &ATOMIC),
    ("fieldRef", &ATOMIC),
    ("fileKeyRef", &ATOMIC),
    ("resourceFieldRef", &ATOMIC),
    ("secretKeyRef", &ATOMIC),
]);
static LIFECYCLE: Type = granular(&[("postStart", &PROBE), ("preStop", &PROBE)]);
static PROBE: Type = granular(&[("exec", &EXEC), ("httpGet", &HTTP_GET)]);
static EXEC: Type = granular(&[("command", &ATOMIC)]);
static HTTP_GET: Type = granular(&[("httpHeaders", &ATOMIC)]);
static PORTS: Type = list(&["containerPort", "protocol"], &MAP);
static RESOURCES: Type = granular(&[("claims", &NAMED), ("limits", &MAP), ("requests", &MAP)]);
static SECURITY: Type = granular(&[("capabilities", &CAPABILITIES)]);
static CAPABILITIES: Type = granular(&[("add", &ATOMIC), ("drop", &ATOMIC)]);
static DEVICES: Type = list(&["devicePath"], &MAP);
static MOUNTS: Type = list(&["mountPath"], &MAP);

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::{Query, Segment};

    fn elements(path: &str) -> Vec<Element> {
        let query: Query = path.parse().unwrap();
        let one = |segment: &Segment| match segment {
            Segment::One(element) => element.clone(),
            Segment::All => Element::Index(0),
        };
        query.segments().iter().map(one).collect()
    }

    const NAME: Structure = Structure::Associative(&["name"]);

    #[rstest]
    #[case("metadata.labels", Structure::Granular)]
    #[case("metadata.finalizers", Structure::Set)]
    #[case("metadata.ownerReferences[uid=u]", Structure::Atomic)]
    #[case("spec.selector", Structure::Atomic)]
    #[case("status.conditions", Structure::Associative(&["type"]))]
    #[case("spec.template.metadata.annotations", Structure::Granular)]
    #[case("spec.template.spec.containers", NAME)]
    #[case("spec.template.spec.initContainers", NAME)]
    #[case("spec.template.spec.ephemeralContainers", NAME)]
    #[case("spec.template.spec.volumes", NAME)]
    #[case("spec.template.spec.imagePullSecrets", NAME)]
    #[case("spec.template.spec.resourceClaims", NAME)]
    #[case("spec.template.spec.schedulingGates", NAME)]
    #[case("spec.template.spec.hostAliases", Structure::Associative(&["ip"]))]
    #[case(
        "spec.template.spec.topologySpreadConstraints",
        Structure::Associative(&["topologyKey", "whenUnsatisfiable"])
    )]
    #[case("spec.template.spec.topologySpreadConstraints[*].labelSelector", Structure::Atomic)]
    #[case("spec.template.spec.tolerations", Structure::Atomic)]
    #[case("spec.template.spec.readinessGates", Structure::Atomic)]
    #[case("spec.template.spec.nodeSelector", Structure::Atomic)]
    #[case("spec.template.spec.overhead", Structure::Granular)]
    #[case("spec.template.spec.containers[name=a]", Structure::Granular)]
    #[case("spec.template.spec.containers[name=a].args", Structure::Atomic)]
    #[case("spec.template.spec.containers[name=a].command", Structure::Atomic)]
    #[case("spec.template.spec.containers[name=a].envFrom", Structure::Atomic)]
    #[case("spec.template.spec.containers[name=a].resizePolicy", Structure::Atomic)]
    #[case("spec.template.spec.containers[name=a].restartPolicyRules", Structure::Atomic)]
    #[case(
        "spec.template.spec.containers[name=a].securityContext.capabilities.add",
        Structure::Atomic
    )]
    #[case("spec.template.spec.containers[name=a].env", NAME)]
    #[case(
        "spec.template.spec.containers[name=a].env[name=X].valueFrom.fieldRef",
        Structure::Atomic
    )]
    #[case(
        "spec.template.spec.containers[name=a].env[name=X].valueFrom.secretKeyRef",
        Structure::Atomic
    )]
    #[case(
        "spec.template.spec.containers[name=a].ports",
        Structure::Associative(&["containerPort", "protocol"])
    )]
    #[case("spec.template.spec.containers[name=a].volumeMounts", Structure::Associative(&["mountPath"]))]
    #[case(
        "spec.template.spec.containers[name=a].volumeDevices",
        Structure::Associative(&["devicePath"])
    )]
    #[case("spec.template.spec.containers[name=a].resources.claims", NAME)]
    #[case("spec.template.spec.containers[name=a].resources.limits", Structure::Granular)]
    #[case("spec.template.spec.containers[name=a].resources.requests", Structure::Granular)]
    fn the_table_says(#[case] path: &str, #[case] structure: Structure) {
        assert_eq!(Schema::Deployment.structure_at(&elements(path)), Some(structure));
    }

    #[rstest]
    #[case("spec.replicas")]
    #[case("spec.template.spec.containers[name=a].image")]
    #[case("metadata.labels.app")]
    fn the_table_is_silent(#[case] path: &str) {
        assert_eq!(Schema::Deployment.structure_at(&elements(path)), None);
    }

    #[test]
    fn another_kind_has_only_metadata() {
        assert_eq!(Schema::Metadata.structure_at(&elements("spec.selector")), None);
        let labels = Schema::Metadata.structure_at(&elements("metadata.labels"));
        assert_eq!(labels, Some(Structure::Granular));
    }
}
