//! The operator's pod as the chart makes it.

use anyhow::{Context as _, Result, bail, ensure};
use belay_components::Binary;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bed::{NAMESPACE, OPERATOR, RELEASE, arguments, deployment, of_kind, render, template};

const HELMS: [Binary; 2] = [Binary::Helm3, Binary::Helm4];

/// Values that reach every line of the templates.
fn everything() -> Value {
    json!({
        "image": { "tag": "2.0.0", "digest": format!("sha256:{}", "a".repeat(64)) },
        "imagePullSecrets": ["pull"],
        "migrateFrom": {
            "fieldManager": "old-operator",
            "pauseMarks": ["old.example/paused-by", "old.example/at"],
        },
        "serviceAccount": { "annotations": { "a.example/b": "c: d" } },
        "github": {
            "url": "https://github.example/api/v3",
            "tokenSecret": { "name": "github", "key": "pat" }, "caSecret": { "name": "ca" },
        },
        "registry": {
            "readPullSecrets": true, "caSecret": { "name": "ca", "key": "registry.pem" },
            "mirrors": { "docker.io": "mirror.example:5000", "ghcr.io": "mirror.example" },
            "allow": ["ghcr.io/acme", "docker.io"],
        },
        "allowRepos": ["shop=acme/*", "team-?=acme/web"], "allowHosts": ["http://10.0.0.1:5000"],
        "allowImageCheckSkip": true, "pollInterval": "5m", "revertWindow": "0s",
        "maxConcurrentRollouts": 1000, "logFormat": "json", "logFilter": "info,belay_operator=debug",
        "podAnnotations": { "a.example/b": "c" }, "nodeSelector": { "disk": "ssd" },
        "tolerations": [{ "operator": "Exists" }], "priorityClassName": "high",
        "affinity": { "nodeAffinity": {} }, "admissionPolicy": { "install": true },
        "rbac": { "editCanRollback": true },
        "serviceMonitor": { "install": true, "interval": "1m", "labels": { "release": "prometheus" } },
        "prometheusRule": { "install": true, "labels": { "release": "prometheus" } },
        "dashboard": { "install": true },
        "networkPolicy": { "install": true, "egressPorts": [443, 5000] },
    })
}

#[rstest]
#[case::defaults(json!({}))]
#[case::namespace(json!({ "scope": "namespace" }))]
#[case::everything(everything())]
#[tokio::test]
async fn both_helms_render_the_same(#[case] values: Value) -> Result<()> {
    let [three, four] = HELMS;
    let (three, four) = (render(three, &values).await?, render(four, &values).await?);
    ensure!(!three.is_empty());
    assert_eq!(three, four);
    Ok(())
}

#[rstest]
#[case::defaults(json!({}))]
#[case::namespace(json!({ "scope": "namespace" }))]
#[case::everything(everything())]
#[tokio::test]
async fn both_helms_find_nothing_to_complain_of(#[case] values: Value) -> Result<()> {
    let cluster = belay_testkit::Cluster::shared().await?;
    for helm in HELMS {
        let tool = cluster.tool(helm)?.args(["lint", "--strict", "--values", "-"]);
        let finished = tool.arg(belay_testkit::operator::chart()).input(values.to_string()).run();
        let finished = finished.await?;
        ensure!(finished.status.success(), "{}{}", finished.stdout, finished.stderr);
        let bad = ["[WARNING]", "[ERROR]"].iter().any(|word| finished.stdout.contains(word));
        ensure!(!bad, "{}", finished.stdout);
    }
    Ok(())
}

#[tokio::test]
async fn one_replica_runs_and_never_two() -> Result<()> {
    let objects = render(Binary::Helm4, &json!({})).await?;
    let spec = &deployment(&objects)?["spec"];
    assert_eq!(spec["replicas"], 1);
    assert_eq!(spec["strategy"], json!({ "type": "Recreate" }));
    Ok(())
}

/// The profile `restricted` of the Pod Security Standards, and a root that cannot be written.
#[tokio::test]
async fn the_pods_are_restricted() -> Result<()> {
    let objects = render(Binary::Helm4, &json!({})).await?;
    let job = of_kind(&objects, "Job").next().context("no Job")?;
    restricted(&deployment(&objects)?["spec"]["template"]["spec"])?;
    restricted(&job["spec"]["template"]["spec"])
}

fn restricted(pod: &Value) -> Result<()> {
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"], json!({ "type": "RuntimeDefault" }));
    for key in ["hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"] {
        ensure!(pod.get(key).is_none(), "{key}");
    }
    let containers = pod["containers"].as_array().map_or(0, Vec::len);
    assert_eq!(containers, 1);
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        })
    );
    for pointer in
        ["/resources/requests/memory", "/resources/requests/cpu", "/resources/limits/memory"]
    {
        ensure!(container.pointer(pointer).is_some(), "{pointer}");
    }
    Ok(())
}

#[tokio::test]
async fn the_container_is_run_and_probed_so() -> Result<()> {
    let objects = render(Binary::Helm4, &json!({})).await?;
    let deployment = deployment(&objects)?;
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(container["image"], format!("ghcr.io/belay-dev/belay-operator:{version}"));
    assert_eq!(container["command"], json!(["belay-operator"]));
    assert_eq!(container["ports"][0]["containerPort"], 8080);
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"], json!({ "path": path, "port": "health" }));
    }
    assert_eq!(
        container["env"],
        json!([{
            "name": "BELAY_NAMESPACE",
            "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } },
        }])
    );
    assert_eq!(pod["serviceAccountName"], OPERATOR);
    let account = of_kind(&objects, "ServiceAccount").next().cloned().unwrap_or_default();
    assert_eq!(account["metadata"]["name"], OPERATOR);
    assert_eq!(account["automountServiceAccountToken"], false);
    assert_eq!(pod["automountServiceAccountToken"], true);
    Ok(())
}

#[tokio::test]
async fn the_defaults_become_these_arguments() -> Result<()> {
    let objects = render(Binary::Helm4, &json!({})).await?;
    assert_eq!(
        arguments(&objects)?,
        [
            "--scope=cluster",
            "--annotation-prefix=belay.dev",
            "--field-manager=belay-operator",
            "--lease-name=belay-operator",
            "--github-url=https://api.github.com",
            "--check-platforms=true",
            "--poll-interval=60s",
            "--revert-window=1h",
            "--max-concurrent-rollouts=10",
            "--health-bind=0.0.0.0:8080",
            "--admin-bind=127.0.0.1:8081",
            "--log-format=text",
            "--log-filter=info",
        ]
    );
    Ok(())
}

#[tokio::test]
async fn every_value_becomes_an_argument() -> Result<()> {
    let objects = render(Binary::Helm4, &everything()).await?;
    assert_eq!(
        arguments(&objects)?,
        [
            "--scope=cluster",
            "--annotation-prefix=belay.dev",
            "--field-manager=belay-operator",
            "--lease-name=belay-operator",
            "--migrate-from-field-manager=old-operator",
            "--migrate-pause-mark=old.example/paused-by",
            "--migrate-pause-mark=old.example/at",
            "--github-url=https://github.example/api/v3",
            "--github-token-file=/etc/belay/github/token",
            "--github-ca-file=/etc/belay/github-ca/ca.crt",
            "--registry-ca-file=/etc/belay/registry-ca/ca.crt",
            "--registry-mirror=docker.io=mirror.example:5000",
            "--registry-mirror=ghcr.io=mirror.example",
            "--read-pull-secrets",
            "--check-platforms=true",
            "--allow-registry=ghcr.io/acme",
            "--allow-registry=docker.io",
            "--allow-repo=shop=acme/*",
            "--allow-repo=team-?=acme/web",
            "--allow-host=http://10.0.0.1:5000",
            "--allow-image-check-skip",
            "--poll-interval=5m",
            "--revert-window=0s",
            "--max-concurrent-rollouts=1000",
            "--health-bind=0.0.0.0:8080",
            "--admin-bind=127.0.0.1:8081",
            "--log-format=json",
            "--log-filter=info,belay_operator=debug",
        ]
    );
    let pod = &deployment(&objects)?["spec"]["template"]["spec"];
    let image = format!("ghcr.io/belay-dev/belay-operator:2.0.0@sha256:{}", "a".repeat(64));
    assert_eq!(pod["containers"][0]["image"], image);
    assert_eq!(
        pod["volumes"],
        json!([
            { "name": "github", "secret": {
                "secretName": "github", "items": [{ "key": "pat", "path": "token" }] } },
            { "name": "github-ca", "secret": {
                "secretName": "ca", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "name": "registry-ca", "secret": {
                "secretName": "ca", "items": [{ "key": "registry.pem", "path": "ca.crt" }] } },
        ])
    );
    assert_eq!(
        pod["containers"][0]["volumeMounts"],
        json!([
            { "mountPath": "/etc/belay/github", "name": "github", "readOnly": true },
            { "mountPath": "/etc/belay/github-ca", "name": "github-ca", "readOnly": true },
            { "mountPath": "/etc/belay/registry-ca", "name": "registry-ca", "readOnly": true },
        ])
    );
    Ok(())
}

/// Names and spellings of options: the schema lets nothing through that these values show.
#[rstest]
#[case::defaults(json!({}))]
#[case::namespace(json!({ "scope": "namespace", "rbac": { "nodes": false } }))]
#[case::everything(everything())]
#[tokio::test]
async fn the_program_understands_the_arguments(#[case] values: Value) -> Result<()> {
    let arguments = arguments(&render(Binary::Helm4, &values).await?)?;
    // The one variable of the container, as an option.
    let words = ["belay-operator", "run", "--namespace=shop"].map(str::to_owned);
    belay_operator::cli::Cli::parse_from(words.into_iter().chain(arguments))?;
    let objects = render(Binary::Helm4, &values).await?;
    let job = of_kind(&objects, "Job").next().context("no Job")?;
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let words: Vec<String> = serde_json::from_value(container["args"].clone())?;
    let program = [container["command"][0].as_str().unwrap_or_default().to_owned()];
    let read = belay_operator::cli::Cli::parse_from(program.into_iter().chain(words))?;
    let belay_operator::cli::Command::ReleasePauses(read) = read.command else {
        bail!("the Job does something else");
    };
    assert_eq!(read.stop, Some((NAMESPACE.to_owned(), OPERATOR.to_owned())));
    let of_one = values["scope"] == "namespace";
    assert_eq!(read.namespace.as_deref(), of_one.then_some(NAMESPACE));
    let marks = values["migrateFrom"]["pauseMarks"].as_array().map_or(0, Vec::len);
    assert_eq!(read.migrate_pause_mark.len(), marks);
    Ok(())
}

#[rstest]
#[case::contained("belay", json!({}), "belay-operator")]
#[case::not_contained("updates", json!({}), "updates-belay-operator")]
#[case::given("updates", json!({ "fullnameOverride": "mover" }), "mover")]
#[tokio::test]
async fn the_name_is_one_everywhere(
    #[case] release: &str,
    #[case] values: Value,
    #[case] name: &str,
) -> Result<()> {
    let cluster = belay_testkit::Cluster::shared().await?;
    let tool = cluster.tool(Binary::Helm4)?.args(["template", release]);
    let tool = tool.arg(belay_testkit::operator::chart());
    let tool =
        tool.args(["--set", "crds.install=false,rbac.aggregateToPeople=false", "-n", NAMESPACE]);
    let text = tool.args(["--values", "-"]).input(values.to_string()).ok().await?;
    let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
    // What is there only while it is uninstalled.
    let (hooks, names): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| name.contains("release-pauses"));
    let hook = format!("{name}-release-pauses");
    let wide_hook = format!("{NAMESPACE}:{name}:release-pauses");
    let known = |found: &&&str| **found != hook && **found != wide_hook;
    ensure!(hooks.len() == 10 && !hooks.iter().any(|found| known(&found)), "{hooks:?}");
    let wide = format!("{NAMESPACE}:{name}");
    let (account, role) = (name, name);
    // Each binding names itself, its role, and the account.
    assert_eq!(names, [account, &wide, &wide, &wide, account, role, name, role, account, name]);
    ensure!(text.contains(&format!("--lease-name={name}")), "{text}");
    Ok(())
}

#[rstest]
#[case::default(json!({}), "one replica")]
#[case::no_token(json!({}), "There is no GitHub token")]
#[case::no_secrets(json!({}), "registry.readPullSecrets=false")]
#[case::pull_secrets(
    json!({ "registry": { "readPullSecrets": true } }),
    "--clusterrole=belay-system:belay-operator:pull-secrets --serviceaccount=belay-system:belay-operator"
)]
#[case::only_public(json!({ "github": { "tokenSecret": { "name": "x" } } }), "only public repositories")]
#[case::prefix(json!({ "annotationPrefix": "a.example" }), "a.example/repo=OWNER/REPOSITORY")]
#[case::nodes(json!({ "rbac": { "nodes": false } }), "rbac.nodes=false")]
#[case::no_crds(json!({ "crds": { "install": false } }), "crds.install=false")]
#[case::own_namespace(json!({ "scope": "namespace" }), "the workloads of namespace belay-system")]
#[case::no_cluster_role(
    json!({ "scope": "namespace", "rbac": { "clusterWide": false } }),
    "rbac.clusterWide=false"
)]
#[tokio::test]
async fn the_notes_say(#[case] values: Value, #[case] says: &str) -> Result<()> {
    let cluster = belay_testkit::Cluster::shared().await?;
    for helm in HELMS {
        let tool = cluster.tool(helm)?.args(["install", RELEASE]);
        let tool = tool.arg(belay_testkit::operator::chart());
        let tool = tool.args(["--namespace", NAMESPACE, "--dry-run=client", "--values", "-"]);
        // A dry run looks at the server too, where other tests put the CRDs.
        let tool = tool.args(["--set", "crds.install=false"]);
        let text = tool.input(values.to_string()).ok().await?;
        let notes = text.split_once("\nNOTES:\n").map(|(_, notes)| notes).unwrap_or_default();
        ensure!(notes.contains(says), "{notes}");
        ensure!(!notes.contains("\n\n\n"), "two empty lines:\n{notes}");
    }
    Ok(())
}

#[tokio::test]
async fn the_version_is_that_of_the_program() -> Result<()> {
    let text = std::fs::read_to_string(belay_testkit::operator::chart().join("Chart.yaml"))?;
    let chart: Value = serde_yaml::from_str(&text)?;
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    let finished = template(Binary::Helm3, &json!({})).await?;
    ensure!(
        finished.ok()?.contains(&format!("helm.sh/chart: belay-{}", env!("CARGO_PKG_VERSION")))
    );
    Ok(())
}
