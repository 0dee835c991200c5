//! Deployments and their statuses.

use belay_testkit::github::{Base, CommitState, DeploymentState, GitHub, NewRelease, Rights};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Answer, client, send};

const REPO: &str = "acme/web";

struct World {
    github: GitHub,
    token: String,
}

impl World {
    fn new() -> Self {
        let github = GitHub::builder().start().unwrap();
        github.create_repository(REPO).unwrap();
        github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
        github.publish(REPO, NewRelease::new("v1.1.0")).unwrap();
        let token = github.create_token("ci", &Rights::write([REPO])).unwrap();
        Self { github, token }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/repos/{REPO}/deployments{path}", self.github.base_url())
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        send(client().post(self.url(path)).bearer_auth(&self.token).json(body)).await
    }

    async fn get(&self, path: &str) -> Value {
        send(client().get(self.url(path)).bearer_auth(&self.token)).await.json()
    }

    async fn deploy(&self, environment: &str) -> u64 {
        let body = json!({ "ref": "v1.0.0", "environment": environment });
        let answer = self.post("", &body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_u64().unwrap()
    }

    async fn state(&self, deployment: u64) -> Option<String> {
        let list = self.get(&format!("/{deployment}/statuses?per_page=1")).await;
        list[0]["state"].as_str().map(str::to_owned)
    }
}

#[tokio::test]
async fn a_deployment_holds_what_was_asked_for() {
    let world = World::new();
    let body = json!({
        "ref": "v1.0.0",
        "task": "deploy:rollback",
        "environment": "staging",
        "description": "back to v1.0.0",
        "auto_merge": false,
        "required_contexts": [],
        "transient_environment": true,
        "payload": { "rollback_uid": "7", "deep": { "a": [1] } },
    });
    let answer = world.post("", &body).await;
    assert_eq!(answer.status, 201);
    let made = answer.json();
    for name in ["ref", "task", "environment", "description", "transient_environment", "payload"] {
        assert_eq!(made[name], body[name], "{name}");
    }
    assert_eq!(made["creator"]["login"], "ci");
    assert_eq!(made["production_environment"], false);
    assert_eq!(made["sha"].as_str().unwrap().len(), 40);
    assert_eq!(answer.header("location"), made["url"]);
    assert_eq!(world.get(&format!("/{}", made["id"])).await, made);
    let default = world.post("", &json!({ "ref": "main" })).await.json();
    assert_eq!(
        [&default["environment"], &default["task"], &default["payload"]],
        [&json!("production"), &json!("deploy"), &json!({})]
    );
    assert_eq!(default["production_environment"], true);
}

#[rstest]
#[case("", &["v1.1.0 production", "v1.0.0 staging", "v1.0.0 production"])]
#[case("?ref=v1.0.0", &["v1.0.0 staging", "v1.0.0 production"])]
#[case("?environment=staging", &["v1.0.0 staging"])]
#[case("?ref=v1.0.0&environment=production", &["v1.0.0 production"])]
#[case("?task=deploy", &["v1.1.0 production", "v1.0.0 staging", "v1.0.0 production"])]
#[case("?task=other", &[])]
#[case("?per_page=1&page=2", &["v1.0.0 staging"])]
#[tokio::test]
async fn lists_are_newest_first_and_filtered(#[case] query: &str, #[case] expected: &[&str]) {
    let world = World::new();
    for (tag, environment) in
        [("v1.0.0", "production"), ("v1.0.0", "staging"), ("v1.1.0", "production")]
    {
        let body = json!({ "ref": tag, "environment": environment });
        assert_eq!(world.post("", &body).await.status, 201);
    }
    let list = world.get(query).await;
    let text = |it: &Value| {
        format!("{} {}", it["ref"].as_str().unwrap(), it["environment"].as_str().unwrap())
    };
    let found: Vec<_> = list.as_array().unwrap().iter().map(text).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_commit_names_its_deployments_too() {
    let world = World::new();
    world.deploy("staging").await;
    let made = world.get("").await[0].clone();
    let sha = made["sha"].as_str().unwrap();
    assert_eq!(world.get(&format!("?sha={sha}")).await, json!([made]));
    let by_sha = world.post("", &json!({ "ref": sha })).await;
    assert_eq!((by_sha.status, &by_sha.json()["sha"]), (201, &made["sha"]));
}

#[rstest]
#[case::all_unknown(&[], json!({}), 201)]
#[case::all_green(&[("ci", CommitState::Success)], json!({}), 201)]
#[case::one_red(&[("ci", CommitState::Success), ("lint", CommitState::Failure)], json!({}), 409)]
#[case::one_pending(&[("ci", CommitState::Pending)], json!({}), 409)]
#[case::bypassed(&[("ci", CommitState::Failure)], json!({ "required_contexts": [] }), 201)]
#[case::named_green(
    &[("ci", CommitState::Success), ("lint", CommitState::Failure)],
    json!({ "required_contexts": ["ci"] }),
    201
)]
#[case::named_missing(&[], json!({ "required_contexts": ["ci"] }), 409)]
#[tokio::test]
async fn required_contexts_must_have_passed(
    #[case] statuses: &[(&str, CommitState)],
    #[case] options: Value,
    #[case] status: u16,
) {
    let world = World::new();
    for (context, state) in statuses {
        world.github.set_commit_status(REPO, "v1.0.0", context, *state).unwrap();
    }
    let mut body = json!({ "ref": "v1.0.0" });
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    assert_eq!(world.post("", &body).await.status, status);
    assert_eq!(world.get("").await.as_array().unwrap().len(), usize::from(status == 201));
}

#[rstest]
#[case::current(Base::Current, true, 201)]
#[case::behind(Base::Behind, true, 202)]
#[case::behind_but_told_not_to(Base::Behind, false, 201)]
#[case::conflicting(Base::Conflicting, true, 409)]
#[case::conflicting_but_told_not_to(Base::Conflicting, false, 201)]
#[tokio::test]
async fn a_branch_that_is_behind_is_merged_instead(
    #[case] base: Base,
    #[case] auto_merge: bool,
    #[case] status: u16,
) {
    let world = World::new();
    world.github.set_branch(REPO, "topic", base).unwrap();
    let mut body = json!({ "ref": "topic" });
    if !auto_merge {
        body["auto_merge"] = false.into();
    }
    let answer = world.post("", &body).await;
    assert_eq!(answer.status, status, "{answer:?}");
    if status == 202 {
        assert_eq!(
            answer.json(),
            json!({ "message": "Auto-merged main into topic on deployment." })
        );
        assert_eq!(world.get("").await, json!([]));
        assert_eq!(world.post("", &body).await.status, 201, "it is merged now");
    }
}

#[rstest]
#[case::no_ref(json!({}), "\"ref\" wasn't supplied")]
#[case::unknown_ref(json!({ "ref": "v9" }), "No ref found for: v9")]
#[case::payload(json!({ "ref": "main", "payload": 1 }), "an object or a string")]
#[case::description(json!({ "ref": "main", "description": "x".repeat(141) }), "Validation Failed")]
#[tokio::test]
async fn a_request_that_makes_no_sense_is_refused(#[case] body: Value, #[case] words: &str) {
    let world = World::new();
    let answer = world.post("", &body).await;
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(answer.status == 422 && message.contains(words), "{answer:?}");
}

#[tokio::test]
async fn statuses_are_newest_first_and_of_githubs_states() {
    let world = World::new();
    let id = world.deploy("production").await;
    assert_eq!(world.state(id).await, None);
    let path = format!("/{id}/statuses");
    for state in DeploymentState::ALL {
        let body = json!({ "state": state.name(), "log_url": "https://ci.example/1" });
        let answer = world.post(&path, &body).await;
        assert_eq!((answer.status, &answer.json()["state"]), (201, &body["state"]));
        assert_eq!(answer.json()["target_url"], body["log_url"]);
        assert_eq!(world.state(id).await.as_deref(), Some(state.name()));
    }
    assert_eq!(world.get(&path).await.as_array().unwrap().len(), DeploymentState::ALL.len());
    let one = world.get(&path).await[0].clone();
    assert_eq!(world.get(&format!("{path}/{}", one["id"])).await, one);
    for wrong in [json!({}), json!({ "state": "done" }), json!({ "state": 1 })] {
        assert_eq!(world.post(&path, &wrong).await.status, 422, "{wrong}");
    }
}

#[rstest]
#[case::same_environment("staging", json!({}), "staging", "inactive")]
#[case::told_not_to("staging", json!({ "auto_inactive": false }), "staging", "success")]
#[case::another_environment("staging", json!({}), "qa", "success")]
#[case::production_stays("production", json!({}), "production", "success")]
#[tokio::test]
async fn a_success_makes_prior_deployments_inactive(
    #[case] before: &str,
    #[case] options: Value,
    #[case] after: &str,
    #[case] state: &str,
) {
    let world = World::new();
    let (first, failed) = (world.deploy(before).await, world.deploy(before).await);
    world.github.report_deployment(REPO, first, DeploymentState::Success).unwrap();
    world.github.report_deployment(REPO, failed, DeploymentState::Failure).unwrap();
    let second = world.deploy(after).await;
    let mut body = json!({ "state": "success" });
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    assert_eq!(world.post(&format!("/{second}/statuses"), &body).await.status, 201);
    assert_eq!(world.state(first).await.as_deref(), Some(state));
    assert_eq!(world.state(failed).await.as_deref(), Some("failure"), "it never succeeded");
    assert_eq!(world.state(second).await.as_deref(), Some("success"));
}

#[tokio::test]
async fn only_those_who_may_write_deploy() {
    let world = World::new();
    let reader = world.github.create_token("reader", &Rights::read([REPO])).unwrap();
    let body = json!({ "ref": "main" });
    let post = |token: Option<&str>| {
        let request = client().post(world.url("")).json(&body);
        send(match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
    };
    assert_eq!(post(None).await.status, 401);
    assert_eq!(post(Some(&reader)).await.status, 403);
    assert_eq!(post(Some(&world.token)).await.status, 201);
    let log = world.github.log();
    assert_eq!(log.last().unwrap().body, body.to_string());
}
