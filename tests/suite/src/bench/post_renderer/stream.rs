//! Manifests as Helm hands them over, of any size, and the live objects that belong to them.
//!
//! The same arguments give the same bytes. The documents that are no targets are those of a large
//! umbrella chart; some are written to look like targets to a search: CronJobs have containers, an
//! HPA names the kind Deployment, and one ConfigMap of [`LOOKALIKE`] documents carries a manifest.

use std::fmt::Write as _;

/// What the chart says.
pub const CHART_TAG: &str = "2.0.0";

/// What the operator has rolled out.
pub const LIVE_TAG: &str = "2.4.1";

/// The release whose manifest this is.
pub const RELEASE: &str = "shop";

/// Every how many documents one that is no target looks like one.
const LOOKALIKE: usize = 100;

/// How large a manifest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Documents.
    pub documents: usize,
    /// Bytes, about.
    pub bytes: usize,
}

/// A manifest in the shape of Helm 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// What the post-renderer reads.
    pub bytes: String,
    /// What it has to write when it preserves the operator's image of every target.
    pub preserved: String,
    /// The numbers of the targets, for [`name`].
    pub targets: Vec<usize>,
}

/// A manifest of this size in which so many documents are targets, spread evenly.
pub fn stream(size: Size, targets: usize) -> Stream {
    let Size { documents, bytes } = size;
    let mut stream = Stream { bytes: String::new(), preserved: String::new(), targets: Vec::new() };
    for index in 0..documents {
        let is_target = (index + 1) * targets / documents > index * targets / documents;
        if is_target {
            stream.targets.push(index);
            stream.bytes += &document(index, &target(index, CHART_TAG));
            stream.preserved += &document(index, &target(index, LIVE_TAG));
        } else {
            let due = bytes * (index + 1) / documents;
            let other = document(index, &other(index, due.saturating_sub(stream.bytes.len())));
            stream.bytes += &other;
            stream.preserved += &other;
        }
    }
    stream
}

/// The name of the object in a document.
pub fn name(index: usize) -> String {
    format!("part-{index}")
}

/// The image of the container `app` of a target, without its tag.
pub fn repository(index: usize) -> String {
    format!("registry.example/acme/{}", name(index))
}

/// The document of a target in the shape of Helm 4, and what is left of it when the image is stripped.
pub fn helm4(index: usize) -> (String, String) {
    let marker = "  annotations:\n";
    let filename = format!(
        "{marker}    postrenderer.helm.sh/postrender-filename: '{RELEASE}/templates/{}.yaml'\n",
        name(index)
    );
    let document = target(index, CHART_TAG).replacen(marker, &filename, 1);
    let stripped = document.replacen(&image_line(index, CHART_TAG), "", 1);
    (document, stripped)
}

/// A target as it is in the cluster after Helm has installed it with the chart's image.
pub fn live(index: usize, namespace: &str) -> String {
    let marker = "  annotations:\n";
    let annotations = format!(
        "{marker}    meta.helm.sh/release-name: {RELEASE}\n    \
         meta.helm.sh/release-namespace: {namespace}\n"
    );
    format!("---\n{}", target(index, CHART_TAG).replacen(marker, &annotations, 1))
}

/// What the operator applies: the image, and the name of the Release that runs.
pub fn rolled(index: usize) -> String {
    let (name, repository) = (name(index), repository(index));
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  \
         annotations:\n    belay.dev/release: {name}-1\nspec:\n  template:\n    spec:\n      containers:\n      - name: app\n        \
         image: \"{repository}:{LIVE_TAG}\"\n"
    )
}

fn document(index: usize, body: &str) -> String {
    format!("---\n# Source: {RELEASE}/templates/{}.yaml\n{body}", name(index))
}

fn image_line(index: usize, tag: &str) -> String {
    format!("        image: \"{}:{tag}\"\n", repository(index))
}

/// A Deployment that Belay follows; also the template of a chart, where `tag` is an expression of Helm's.
pub fn target(index: usize, tag: &str) -> String {
    let name = name(index);
    let image = image_line(index, tag);
    let mut variables = String::new();
    for variable in ["LOG_LEVEL", "HTTP_PORT", "DATABASE_HOST", "DATABASE_NAME", "CACHE_URL"] {
        let value = variable.to_lowercase().replace('_', "-");
        let _ = writeln!(variables, "        - name: {variable}\n          value: \"{value}\"");
    }
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: {name}
    app.kubernetes.io/instance: {RELEASE}
    app.kubernetes.io/managed-by: Helm
  annotations:
    belay.dev/repo: acme/{name}
    belay.dev/container: app
spec:
  replicas: 2
  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {name}
      annotations:
        prometheus.io/scrape: \"true\"
    spec:
      initContainers:
      - name: migrate
        image: registry.example/acme/migrate:1.3.0
        args: [\"up\", \"--wait\"]
      containers:
      # Moved by Belay.
      - name: app
{image}        imagePullPolicy: IfNotPresent
        ports:
        - name: http
          containerPort: 8080
        env:
{variables}        livenessProbe:
          httpGet: {{ path: /healthz, port: http }}
          periodSeconds: 10
        readinessProbe:
          httpGet: {{ path: /readyz, port: http }}
        resources:
          limits:
            memory: 256Mi
          requests:
            cpu: 100m
            memory: 128Mi
      - name: proxy
        image: registry.example/acme/proxy:0.9.2
"
    )
}

/// A document of one of the kinds that charts have; a ConfigMap takes up what is missing to the size.
fn other(index: usize, missing: usize) -> String {
    let name = name(index);
    let head = |api: &str, kind: &str| {
        format!(
            "apiVersion: {api}\nkind: {kind}\nmetadata:\n  name: {name}\n  labels:\n    \
             app.kubernetes.io/instance: {RELEASE}\n    app.kubernetes.io/managed-by: Helm\n"
        )
    };
    if index % LOOKALIKE == LOOKALIKE / 2 {
        let manifest = target(index, CHART_TAG).replace('\n', "\n    ");
        let data = format!("data:\n  manifest.yaml: |\n    {}\n", manifest.trim_end());
        return head("v1", "ConfigMap") + &data;
    }
    match index % 10 {
        1 | 4 => {
            head("v1", "Service")
                + &format!(
                    "spec:\n  type: ClusterIP\n  ports:\n  - name: http\n    port: 80\n    \
                     targetPort: http\n  selector:\n    app.kubernetes.io/name: {name}\n"
                )
        }
        2 => {
            head("autoscaling/v2", "HorizontalPodAutoscaler")
                + &format!(
                    "spec:\n  scaleTargetRef:\n    apiVersion: apps/v1\n    kind: Deployment\n    \
                     name: {name}\n  minReplicas: 2\n  maxReplicas: 6\n"
                )
        }
        8 => {
            head("batch/v1", "CronJob")
                + "spec:\n  schedule: \"*/15 * * * *\"\n  jobTemplate:\n    spec:\n      template:\n        \
                   spec:\n          restartPolicy: Never\n          containers:\n          - name: job\n            \
                   image: registry.example/acme/job:1.0.0\n"
        }
        7 => {
            head("rbac.authorization.k8s.io/v1", "RoleBinding")
                + &format!(
                    "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: {name}\n\
                     subjects:\n- kind: ServiceAccount\n  name: {name}\n"
                )
        }
        _ => config_map(head("v1", "ConfigMap"), index, missing),
    }
}

/// Settings and a block scalar, with a separator inside of it that is none.
fn config_map(mut text: String, index: usize, missing: usize) -> String {
    text += "data:\n  enabled: \"yes\"\n  application.properties: |\n    # generated\n    ---\n";
    let mut line = 0;
    while text.len() < missing {
        let _ =
            writeln!(text, "    service.{index}.option.{line}=value of option {line}, \"quoted\"");
        line += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use belay_post_renderer::{scan, split};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::the_large_one(6_000, 10_000_000, 50)]
    #[case::one_target(6, 8_000, 1)]
    #[case::none(6, 8_000, 0)]
    #[case::all(3, 5_000, 3)]
    fn a_stream_has_what_was_asked_for(
        #[case] documents: usize,
        #[case] bytes: usize,
        #[case] targets: usize,
    ) {
        let stream = stream(Size { documents, bytes }, targets);
        assert_eq!(split::split(stream.bytes.as_bytes()).len(), documents);
        let (least, most) = (bytes / 10 * 9, bytes / 10 * 11);
        assert!((least..most).contains(&stream.bytes.len()), "{}", stream.bytes.len());
        let manifest = scan::read(stream.bytes.as_bytes(), "belay.dev").unwrap();
        let found: Vec<_> = manifest.targets.iter().map(|target| target.name.clone()).collect();
        let expected: Vec<_> = stream.targets.iter().map(|index| Some(name(*index))).collect();
        assert_eq!(found.len(), targets);
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }

    #[test]
    fn the_same_arguments_give_the_same_bytes() {
        assert_eq!(
            stream(Size { documents: 40, bytes: 60_000 }, 3),
            stream(Size { documents: 40, bytes: 60_000 }, 3)
        );
    }

    #[test]
    fn what_is_preserved_differs_in_the_images_of_the_targets_alone() {
        let stream = stream(Size { documents: 40, bytes: 60_000 }, 3);
        let pairs = stream.bytes.lines().zip(stream.preserved.lines());
        let changed: Vec<_> = pairs.filter(|(before, after)| before != after).collect();
        assert_eq!(changed.len(), 3);
        for ((before, after), index) in changed.into_iter().zip(&stream.targets) {
            let image = |tag: &str| format!("        image: \"{}:{tag}\"", repository(*index));
            assert_eq!((before, after), (&*image(CHART_TAG), &*image(LIVE_TAG)));
        }
    }

    #[test]
    fn names_are_unique_and_look_alikes_are_among_the_documents() {
        let text = stream(Size { documents: 400, bytes: 660_000 }, 4).bytes;
        let names: Vec<_> = text.lines().filter(|line| line.starts_with("  name: ")).collect();
        let distinct: BTreeSet<_> = names.iter().collect();
        // RoleBindings name their role at the same depth.
        assert!(names.len() >= 400 && distinct.len() == 400, "{} {}", names.len(), distinct.len());
        assert_eq!(text.matches("  manifest.yaml: |").count(), 4);
    }

    #[test]
    fn the_shape_of_helm_4_has_the_filename_and_loses_one_line_when_stripped() {
        let (document, stripped) = helm4(7);
        let manifest = scan::read(document.as_bytes(), "belay.dev").unwrap();
        assert_eq!(manifest.targets.len(), 1);
        assert!(document.contains("postrenderer.helm.sh/postrender-filename: 'shop/templates/"));
        assert_eq!(document.len() - stripped.len(), image_line(7, CHART_TAG).len());
    }

    #[test]
    fn the_live_object_carries_what_helm_adds_and_the_operator_applies_the_image() {
        let live = live(7, "bench-0");
        let manifest = scan::read(live.as_bytes(), "belay.dev").unwrap();
        assert_eq!(manifest.targets.len(), 1);
        assert!(live.contains("    meta.helm.sh/release-namespace: bench-0\n"));
        assert!(rolled(7).ends_with("image: \"registry.example/acme/part-7:2.4.1\"\n"));
    }
}
