//! Values that are refused, and a schema that knows exactly those that there are.

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_testkit::operator::chart;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bed::{refusal, template};

const HELMS: [Binary; 2] = [Binary::Helm3, Binary::Helm4];

/// `{"a": {"b": value}}` for `/a/b`.
fn at(pointer: &str, value: Value) -> Value {
    pointer
        .rsplit('/')
        .filter(|key| !key.is_empty())
        .fold(value, |inner, key| json!({ key: inner }))
}

#[rstest]
#[case::typo("/anotationPrefix", json!("belay.dev"))]
#[case::replicas("/replicas", json!(2))]
#[case::nested_typo("/github/tokenSecrets", json!({ "name": "x" }))]
#[case::image_typo("/image/name", json!("x"))]
#[case::crds_typo("/crds/create", json!(true))]
#[case::rbac_typo("/rbac/create", json!(true))]
#[case::secret_typo("/github/tokenSecret/secretName", json!("x"))]
#[case::registry_typo("/registry/allowed", json!([]))]
#[tokio::test]
async fn an_unknown_value_is_refused_by_its_name(
    #[case] pointer: &str,
    #[case] value: Value,
) -> Result<()> {
    let values = at(pointer, value);
    let key = pointer.rsplit('/').next().unwrap_or_default();
    for helm in HELMS {
        let said = refusal(helm, &values).await?;
        ensure!(said.contains("additional properties") && said.contains(key), "{said}");
    }
    Ok(())
}

#[rstest]
#[case("/scope", json!("everything"))]
#[case("/annotationPrefix", json!("belay.dev/"))]
#[case("/annotationPrefix", json!("Belay.dev"))]
#[case("/annotationPrefix", json!(""))]
#[case("/annotationPrefix", json!("apps.kubernetes.io"))]
#[case("/annotationPrefix", json!("k8s.io"))]
#[case("/fieldManager", json!(""))]
#[case("/fieldManager", json!("two words"))]
#[case("/fieldManager", json!("helm"))]
#[case("/fieldManager", json!("kubectl-edit"))]
#[case("/migrateFrom/fieldManager", json!("kubectl"))]
#[case("/migrateFrom/pauseMarks", json!(["paused-by"]))]
#[case("/migrateFrom/pauseMarks", json!(["autoscaling.keda.sh/paused"]))]
#[case("/fullnameOverride", json!("With.Dots"))]
#[case("/image/tag", json!(1.2))]
#[case("/image/tag", json!("a b"))]
#[case("/image/digest", json!("sha256:abc"))]
#[case("/image/repository", json!("ghcr.io/acme/x:1"))]
#[case("/image/pullPolicy", json!("Sometimes"))]
#[case("/imagePullSecrets", json!([{ "name": "x" }]))]
#[case("/crds/install", json!("yes"))]
#[case("/rbac/nodes", json!("false"))]
#[case("/admissionPolicy/install", json!("auto"))]
#[case("/rbac/clusterWide", json!(0))]
#[case("/serviceAccount/name", json!("Upper"))]
#[case("/github/url", json!("api.github.com"))]
#[case("/github/url", json!("https://token@github.example"))]
#[case("/github/url", json!("https://github.example/?a"))]
#[case("/github/tokenSecret/key", json!(""))]
#[case("/github/tokenSecret/name", json!("Upper"))]
#[case("/registry/readPullSecrets", json!("true"))]
#[case("/registry/mirrors", json!(["docker.io=mirror.example"]))]
#[case("/registry/mirrors", json!({ "docker": "mirror.example" }))]
#[case("/registry/mirrors", json!({ "docker.io": "https://mirror.example" }))]
#[case("/registry/allow", json!("ghcr.io"))]
#[case("/registry/allow", json!(["https://ghcr.io"]))]
#[case("/registry/allow", json!(["ghcr.io/*"]))]
#[case("/allowRepos", json!(["acme/web"]))]
#[case("/allowRepos", json!(["shop=acme"]))]
#[case("/allowRepos", json!(["shop=acme/**"]))]
#[case("/allowHosts", json!(["10.0.0.0/8"]))]
#[case("/allowHosts", json!(["ftp://a.example:21"]))]
#[case("/allowImageCheckSkip", json!("true"))]
#[case("/pollInterval", json!(60))]
#[case("/pollInterval", json!("1d"))]
#[case("/pollInterval", json!(""))]
#[case("/revertWindow", json!("1.5h"))]
#[case("/maxConcurrentRollouts", json!(0))]
#[case("/maxConcurrentRollouts", json!(1.5))]
#[case("/maxConcurrentRollouts", json!("10"))]
#[case("/logFormat", json!("xml"))]
#[case("/logFilter", json!("info, debug"))]
#[case("/tolerations", json!({}))]
#[case("/nodeSelector", json!({ "a": 1 }))]
#[tokio::test]
async fn a_wrong_value_is_refused_with_its_place(
    #[case] pointer: &str,
    #[case] value: Value,
) -> Result<()> {
    let values = at(pointer, value);
    for helm in HELMS {
        let said = refusal(helm, &values).await?;
        ensure!(said.contains(&format!("at '{pointer}")), "{said}");
    }
    Ok(())
}

#[rstest]
#[case::github_enterprise("/github/url", json!("https://github.example:8443/api/v3"))]
#[case::loopback("/github/url", json!("http://127.0.0.1:8080"))]
#[case::null_is_a_default("/registry/readPullSecrets", json!(null))]
#[case::null_is_where_there_is_one("/admissionPolicy/install", json!(null))]
#[case::six("/allowHosts", json!(["[::1]:5000", "http://registry.corp", "10.0.0.1"]))]
#[case::dots("/allowRepos", json!(["*=acme/web.site", "team-?=*/*"]))]
#[case::subchart("/global", json!({ "anything": 1 }))]
#[case::condition("/enabled", json!(true))]
#[case::own_domain("/annotationPrefix", json!("ak8s.io"))]
#[case::port("/image/repository", json!("registry.corp:5000/acme/operator"))]
#[tokio::test]
async fn an_unusual_value_is_accepted(#[case] pointer: &str, #[case] value: Value) -> Result<()> {
    for helm in HELMS {
        template(helm, &at(pointer, value.clone())).await?.ok()?;
    }
    Ok(())
}

#[rstest]
#[case::no_cluster_role(
    json!({ "rbac": { "clusterWide": false } }),
    "scope=cluster needs rbac.clusterWide=true"
)]
#[case::nobody(
    json!({ "serviceAccount": { "create": false } }),
    "serviceAccount.create=false needs serviceAccount.name"
)]
#[case::everybody(
    json!({ "serviceAccount": { "create": false, "name": "default" } }),
    "serviceAccount.name may not be default"
)]
#[case::certificates_of_nothing(
    json!({ "github": { "url": "http://127.0.0.1:1", "caSecret": { "name": "ca" } } }),
    "github.caSecret needs an https address"
)]
#[case::token_in_clear_text(
    json!({ "github": { "url": "http://github.example/api" }, "allowHosts": ["github.example"] }),
    "use https, or name http://github.example in allowHosts"
)]
#[case::looks_like_loopback(
    json!({ "github": { "url": "http://localhost.example:81" } }),
    "use https, or name http://localhost.example:81 in allowHosts"
)]
#[case::from_itself(
    json!({ "migrateFrom": { "fieldManager": "belay-operator" } }),
    "migrateFrom.fieldManager=belay-operator is the operator's own"
)]
#[case::other_namespace(
    json!({ "scope": "namespace", "allowRepos": ["shop=acme/web"] }),
    "allowRepos: shop=acme/web is for namespace shop"
)]
#[tokio::test]
async fn values_that_make_no_sense_together_are_refused_with_a_sentence(
    #[case] values: Value,
    #[case] says: &str,
) -> Result<()> {
    for helm in HELMS {
        let said = refusal(helm, &values).await?;
        ensure!(said.contains(says), "{said}");
    }
    Ok(())
}

#[rstest]
#[case::own_namespace(json!({ "scope": "namespace", "allowRepos": ["belay-system=acme/web"] }))]
#[case::pattern(json!({ "scope": "namespace", "allowRepos": ["*=acme/web"] }))]
#[case::every_namespace(json!({ "allowRepos": ["shop=acme/web"] }))]
#[case::loopback(
    json!({ "github": { "url": "http://127.0.0.1:1", "tokenSecret": { "name": "token" } } })
)]
#[case::clear_text_on_purpose(json!({
    "github": { "url": "http://github.example/api" }, "allowHosts": ["http://github.example"],
}))]
#[case::account_of_others(json!({ "serviceAccount": { "create": false, "name": "mine" } }))]
#[tokio::test]
async fn values_that_make_sense_together_are_accepted(#[case] values: Value) -> Result<()> {
    for helm in HELMS {
        template(helm, &values).await?.ok()?;
    }
    Ok(())
}

/// A null takes a default away.
#[rstest]
#[case("/scope")]
#[case("/github")]
#[case("/github/url")]
#[case("/pollInterval")]
#[tokio::test]
async fn a_value_that_is_taken_away_is_missed(#[case] pointer: &str) -> Result<()> {
    let key = pointer.rsplit('/').next().unwrap_or_default();
    for helm in HELMS {
        let said = refusal(helm, &at(pointer, Value::Null)).await?;
        ensure!(said.contains(&format!("missing property '{key}'")), "{said}");
    }
    Ok(())
}

/// Compares the keys of the defaults with those of the schema, and looks at every object on the way.
fn compare(defaults: &Value, schema: &Value, path: &str, problems: &mut Vec<String>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    if schema["additionalProperties"] != json!(false) {
        problems.push(format!("{path}: anything is allowed beside what is known"));
    }
    let required = schema["required"].as_array();
    let optional = ["/global", "/enabled", "/admissionPolicy/install", "/registry/readPullSecrets"];
    let known = defaults.as_object();
    for key in known.into_iter().flat_map(|map| map.keys()) {
        if !properties.contains_key(key) {
            problems.push(format!("{path}/{key} is not in the schema"));
        }
    }
    for (key, inner) in properties {
        let path = format!("{path}/{key}");
        if !inner["description"].is_string() {
            problems.push(format!("{path} has no description"));
        }
        let is_required = required.is_some_and(|all| all.contains(&json!(key)));
        if is_required == optional.contains(&path.as_str()) {
            problems.push(format!("{path}: required is {is_required}"));
        }
        match known.and_then(|map| map.get(key)) {
            Some(value) => compare(value, inner, &path, problems),
            // What Helm itself sets, or a chart above.
            None if ["/global", "/enabled"].contains(&path.as_str()) => {}
            None => problems.push(format!("{path} is not in values.yaml")),
        }
    }
}

#[test]
fn the_schema_and_the_defaults_know_the_same_values() -> Result<()> {
    let read = |name: &str| {
        let path = chart().join(name);
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let defaults: Value = serde_yaml::from_str(&read("values.yaml")?)?;
    let schema: Value = serde_json::from_str(&read("values.schema.json")?)?;
    let mut problems = Vec::new();
    compare(&defaults, &schema, "", &mut problems);
    assert_eq!(problems, Vec::<String>::new());
    // The comparison itself finds what it is for.
    let typo = json!({ "scop": "cluster" });
    compare(&typo, &schema, "", &mut problems);
    ensure!(problems.contains(&"/scop is not in the schema".to_owned()), "{problems:?}");
    ensure!(problems.contains(&"/scope is not in values.yaml".to_owned()), "{problems:?}");
    Ok(())
}
