//! Requests with strict field validation, and what a refusal must say.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use belay_api::{AnnotationPrefix, crd};
use belay_testkit::Cluster;
use kube::{
    Client,
    api::{GetParams, ListParams, Patch, PatchParams, PostParams, Request},
};
use serde_json::Value;
use tokio::sync::OnceCell;

/// A client and the namespace that these tests share: names are unique instead.
pub(crate) struct Bed {
    client: Client,
    namespace: &'static str,
}

/// Whether a write is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// It is checked in full and then forgotten.
    Dry,
    /// It is stored.
    Kept,
}

/// What an API server answered.
pub(crate) type Answer = Result<Value>;

/// Sends a request with a mode of field validation, which kube's builder has for apply alone. A
/// macro, because the type of a request has no name here.
macro_rules! send {
    ($bed:expr, $request:expr, $validation:expr) => {{
        let mut request = $request;
        let uri = request.uri().to_string();
        let and = if uri.ends_with(['?', '&']) { "" } else { "&" };
        *request.uri_mut() = format!("{uri}{and}fieldValidation={}", $validation).parse()?;
        Ok($bed.client.request(request).await?)
    }};
}

impl Bed {
    /// The bed on the control plane of this process, with the CRDs applied.
    pub(crate) async fn get() -> Result<Self> {
        static NAMESPACE: OnceCell<String> = OnceCell::const_new();
        let cluster = Cluster::shared().await?;
        let prepare = || async {
            cluster.apply_crds(&crd::all(&AnnotationPrefix::default())).await?;
            anyhow::Ok(cluster.namespace("api").await?)
        };
        let namespace = NAMESPACE.get_or_try_init(prepare).await?;
        Ok(Self { client: cluster.admin()?, namespace })
    }

    /// Creates an object.
    pub(crate) async fn create(&self, object: &Value, write: Write) -> Answer {
        self.create_with(object, write, "Strict").await
    }

    /// Creates an object with this mode of field validation.
    pub(crate) async fn create_with(
        &self,
        object: &Value,
        write: Write,
        validation: &str,
    ) -> Answer {
        let params = PostParams { dry_run: write == Write::Dry, ..PostParams::default() };
        let body = object.to_string().into_bytes();
        let request = Request::new(self.path(kind_of(object))).create(&params, body);
        send!(self, request?, validation)
    }

    /// Merge-patches an object.
    pub(crate) async fn patch(
        &self,
        kind: &str,
        name: &str,
        patch: &Value,
        write: Write,
    ) -> Answer {
        let params = PatchParams { dry_run: write == Write::Dry, ..PatchParams::default() };
        let request = Request::new(self.path(kind)).patch(name, &params, &Patch::Merge(patch));
        send!(self, request?, "Strict")
    }

    /// Merge-patches `/status` of an object; the patch names `status` itself.
    pub(crate) async fn patch_status(
        &self,
        kind: &str,
        name: &str,
        patch: &Value,
        write: Write,
    ) -> Answer {
        let params = PatchParams { dry_run: write == Write::Dry, ..PatchParams::default() };
        let patch = Patch::Merge(patch);
        let request =
            Request::new(self.path(kind)).patch_subresource("status", name, &params, &patch);
        send!(self, request?, "Strict")
    }

    /// Fails unless `status`, with this value at this pointer below it, is refused with a cause at
    /// `field` that says `says`.
    pub(crate) async fn refuses_in_status(
        &self,
        kind: &str,
        name: &str,
        status: Value,
        (pointer, value): (&str, Value),
        (field, says): (&str, &str),
    ) -> Result<()> {
        let patch = edited(status, &[(&format!("/status/{pointer}"), value)]);
        expect_refusal(self.patch_status(kind, name, &patch, Write::Dry).await, 422, field, says)
    }

    /// Applies `/status` of an object as one field manager, without force.
    pub(crate) async fn apply_status(&self, object: &Value, manager: &str) -> Answer {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let patch = Patch::Apply(object);
        let request = Request::new(self.path(kind_of(object))).patch_subresource(
            "status",
            name,
            &PatchParams::apply(manager),
            &patch,
        );
        send!(self, request?, "Strict")
    }

    /// Lists the objects of a kind that a field selector matches.
    pub(crate) async fn list(&self, kind: &str, field_selector: &str) -> Answer {
        let params = ListParams::default().fields(field_selector);
        let request = Request::new(self.path(kind)).list(&params);
        Ok(self.client.request(request?).await?)
    }

    /// An object as the table row that kubectl prints: pairs of column and cell, of every priority.
    pub(crate) async fn row(&self, kind: &str, name: &str) -> Result<Vec<(String, Value)>> {
        let mut request = Request::new(self.path(kind)).get(name, &GetParams::default())?;
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        request.headers_mut().insert("accept", table.parse()?);
        let table: Value = self.client.request(request).await?;
        let names = table["columnDefinitions"].as_array().context("no columns")?.iter();
        let names = names.map(|column| column["name"].as_str().unwrap_or_default().to_owned());
        let cells = table["rows"][0]["cells"].as_array().context("no row")?.iter().cloned();
        Ok(names.zip(cells).collect())
    }

    /// What the API server says about the kinds of the group.
    pub(crate) async fn discovery(&self) -> Result<Value> {
        let resources = self.client.list_api_group_resources("belay.dev/v1alpha1").await?;
        Ok(serde_json::to_value(resources)?)
    }

    fn path(&self, kind: &str) -> String {
        let plural = match kind {
            "Release" => "releases",
            "Rollback" => "rollbacks",
            "AutomatedRollbackPolicy" => "automatedrollbackpolicies",
            _ => "releasetargets",
        };
        format!("/apis/belay.dev/v1alpha1/namespaces/{}/{plural}", self.namespace)
    }
}

fn kind_of(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

/// A target name that no other test uses.
pub(crate) fn unique_target() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("target-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// `object` with values set at JSON pointers; a null removes what is there.
pub(crate) fn edited(mut object: Value, edits: &[(&str, Value)]) -> Value {
    for (pointer, value) in edits {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let mut at = &mut object;
        for step in parent.split('/').skip(1) {
            at = match step.parse::<usize>() {
                Ok(index) if at.is_array() => &mut at[index],
                _ => &mut at[step],
            };
        }
        match (at, value) {
            (Value::Object(map), Value::Null) => drop(map.remove(key)),
            (Value::Array(items), value) => match key.parse::<usize>() {
                Ok(index) => items[index] = value.clone(),
                Err(_) => items.push(value.clone()),
            },
            (at, value) => at[key] = value.clone(),
        }
    }
    object
}

/// A string of `length` times `a`.
pub(crate) fn long(length: usize) -> Value {
    "a".repeat(length).into()
}

/// Fails unless the API server refused with this code, and with a cause at `field` whose message
/// contains `says`. Without `field` the message as a whole is looked at.
pub(crate) fn expect_refusal(answer: Answer, code: u16, field: &str, says: &str) -> Result<()> {
    let error = match answer {
        Err(error) => error,
        Ok(object) => bail!("accepted: {object}"),
    };
    let kube::Error::Api(status) = error.downcast::<kube::Error>()? else {
        bail!("the request itself failed");
    };
    ensure!(status.code == code, "code {}: {}", status.code, status.message);
    if field.is_empty() {
        ensure!(status.message.contains(says), "says: {}", status.message);
        return Ok(());
    }
    let causes = status.details.map(|details| details.causes).unwrap_or_default();
    let found = causes.iter().any(|cause| cause.field == field && cause.message.contains(says));
    ensure!(found, "causes: {causes:#?}");
    Ok(())
}
