//! What a run has to ask before it can decide: where Helm applies, the live objects, and how Helm
//! applies.

use std::{collections::BTreeMap, mem, pin::pin};

use crate::{
    cluster::{self, ApplyMethod, Cluster, Fetched, LiveReader, ObjectKey, RecordAnswer},
    decide::{Apply, Decision, Live, Settings},
    helm::{Driver, ServerSide as HelmServerSide},
    locate::{self, Source, Told},
    program::{
        Setting,
        cli::ServerSide,
        guard::{Guard, LOOK},
        render::each,
        waits,
    },
    report::{Fact, Report},
    scan::{Container, Manifest, Target},
};

/// The live objects, and the namespace for those that name none.
#[derive(Default)]
pub(super) struct Answers {
    namespace: String,
    objects: BTreeMap<ObjectKey, Fetched>,
}

impl Answers {
    pub(super) fn namespace_of<'a>(&'a self, target: &'a Target) -> &'a str {
        target.namespace.as_deref().filter(|own| !own.is_empty()).unwrap_or(&self.namespace)
    }

    fn key(&self, target: &Target) -> Option<ObjectKey> {
        let name = target.name.as_deref()?;
        Some(ObjectKey::new(target.kind, self.namespace_of(target), name))
    }

    pub(super) fn live(&self, target: &Target, container: &Container) -> Live {
        let Some(key) = self.key(target) else { return Live::Unnamed };
        match self.objects.get(&key) {
            Some(Ok(Some(found))) => {
                found.about(container.list, container.name.as_deref().unwrap_or_default())
            }
            Some(Ok(None)) => Live::NotFound,
            Some(Err(error)) => Live::Unknown { why: error.to_string() },
            None => Live::Unknown { why: "it was not asked for".to_owned() },
        }
    }
}

/// Finds the cluster, reads the objects, and how Helm applies.
pub(super) fn ask(
    setting: &Setting,
    manifest: &Manifest<'_>,
    named: &[&Target],
    settings: &mut Settings,
    report: &mut Report,
) -> Result<Answers, String> {
    let has_own = |target: &&Target| target.namespace.as_ref().is_some_and(|own| !own.is_empty());
    let place = locate::locate(
        setting.cli.place(),
        &setting.environment,
        &setting.parent,
        named.iter().all(has_own),
    )
    .map_err(|error| cluster::chain(&error))?;
    let expected = setting.cli.expect_server.as_deref().filter(|url| !url.is_empty());
    let guard = &setting.guard;
    let destination =
        cluster::resolve(&place, expected, &|path| waits::before_reading(guard, path))
            .map_err(|error| cluster::chain(&error))?;
    if destination.needs_more() {
        guard.watch();
    }
    report.server = Some(Fact::from(&destination.server));
    report.context = destination.context.as_ref().map(Fact::from);
    report.namespace = Some(Fact::from(&destination.namespace));
    setting.so_far.keep(report);
    let mut answers =
        Answers { namespace: destination.namespace.value.clone(), objects: BTreeMap::new() };
    let mut keys: Vec<ObjectKey> = named.iter().filter_map(|target| answers.key(target)).collect();
    keys.sort();
    keys.dedup();
    let told = told_apply(setting, manifest)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| format!("start the runtime: {error}"))?;
    let asked = runtime.block_on(watched(guard, async {
        let cluster =
            Cluster::new(&destination, keys.len()).map_err(|error| cluster::chain(&error))?;
        let reader = LiveReader::new(&cluster, setting.cli.annotation_prefix.clone());
        let fetched = reader.read(&keys).await;
        answers.objects = keys.into_iter().zip(fetched).collect();
        let release = release(place.release, &answers)?;
        report.release = release.as_ref().map(Fact::from);
        settings.release = release.as_ref().map(|told| told.value.clone());
        if setting.parent.helm().is_some() {
            settings.release_namespace = Some(destination.namespace.value.clone());
        }
        if let Some((apply, from)) = told {
            settings.apply = apply;
            report.apply = Some(apply_fact(apply, &from));
        } else if needs_record(manifest, &answers, settings) {
            let (apply, from) = match &release {
                Some(release) => {
                    recorded(setting, &cluster, &destination.namespace.value, &release.value).await
                }
                None => (Apply::Unknown, "the release is unknown".to_owned()),
            };
            settings.apply = apply;
            report.apply = Some(apply_fact(apply, &from));
        }
        Ok(answers)
    }));
    // The process ends soon, and its connections with it; to close them in order takes time.
    mem::forget(runtime);
    asked
}

/// What the server says; while it lets the run wait, the run looks whether it has to end.
async fn watched<T>(guard: &Guard, asked: impl Future<Output = T>) -> T {
    let mut asked = pin!(asked);
    while !guard.watches() {
        match tokio::time::timeout(LOOK, asked.as_mut()).await {
            Ok(answered) => return answered,
            Err(_) => guard.look(),
        }
    }
    asked.await
}

fn apply_fact(apply: Apply, from: &str) -> Fact {
    let word = match apply {
        Apply::ClientSide => "client-side",
        Apply::ServerSide => "server-side",
        Apply::Unknown => "unknown",
    };
    Fact::new(word, from)
}

/// The release: told, or the one that all live objects name.
fn release(told: Option<Told<String>>, answers: &Answers) -> Result<Option<Told<String>>, String> {
    if told.is_some() {
        return Ok(told);
    }
    let found = answers.objects.values().filter_map(|fetched| fetched.as_ref().ok()?.as_ref());
    let mut names: Vec<&str> = found.filter_map(cluster::Found::release_name).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(Told::new((*one).to_owned(), Source::LiveObjects))),
        several => Err(format!(
            "the release is unknown: the live objects belong to {}; add `--release NAME` to \
             belay's arguments",
            several.join(" and ")
        )),
    }
}

/// How Helm applies, as far as no cluster need be asked (the specification, section 3).
fn told_apply(
    setting: &Setting,
    manifest: &Manifest<'_>,
) -> Result<Option<(Apply, String)>, String> {
    // Helm 4 marks each document with its template; Helm 3 knows no server-side apply. What
    // `helm template` printed is marked by neither, so there the release's record has to tell.
    let helm_3 =
        !setting.cli.explain && manifest.targets.iter().all(|target| target.filename.is_none());
    let helm = setting.parent.helm();
    let flag = helm.and_then(|helm| helm.server_side);
    let contradiction = |ours: &str, helms: &str| {
        Err(format!(
            "how Helm applies: --server-side says {ours}, but {helms}; belay must know how Helm \
             applies, so make them agree or leave --server-side out"
        ))
    };
    let option = match setting.cli.server_side {
        ServerSide::Auto => None,
        ServerSide::True => Some(Apply::ServerSide),
        ServerSide::False => Some(Apply::ClientSide),
    };
    match (option, flag) {
        (Some(Apply::ServerSide), _) if helm_3 && helm.is_some() => {
            return contradiction("true", "this is Helm 3, which applies on the client side");
        }
        (Some(Apply::ServerSide), Some(HelmServerSide::False)) => {
            return contradiction("true", "helm's command line says false");
        }
        (Some(Apply::ClientSide), Some(HelmServerSide::True)) => {
            return contradiction("false", "helm's command line says true");
        }
        _ => {}
    }
    Ok(match (option, flag) {
        (Some(apply), _) => Some((apply, "--server-side".to_owned())),
        (None, _) if helm_3 => Some((Apply::ClientSide, "the input is Helm 3's".to_owned())),
        (None, Some(HelmServerSide::True)) => {
            Some((Apply::ServerSide, Source::HelmCommandLine.to_string()))
        }
        (None, Some(HelmServerSide::False)) => {
            Some((Apply::ClientSide, Source::HelmCommandLine.to_string()))
        }
        (None, Some(HelmServerSide::Auto) | None) => None,
    })
}

/// Whether how Helm applies makes a difference: some container would be stripped, or `--mode strip`
/// asks for it.
fn needs_record(manifest: &Manifest<'_>, answers: &Answers, settings: &Settings) -> bool {
    let would_strip = Settings { apply: Apply::ServerSide, ..settings.clone() };
    each(manifest, answers, &would_strip)
        .iter()
        .any(|(_, verdict)| matches!(verdict.decision, Decision::Strip { .. }))
}

async fn recorded(
    setting: &Setting,
    cluster: &Cluster,
    namespace: &str,
    release: &str,
) -> (Apply, String) {
    if setting.environment.driver != Driver::Secrets {
        let why = "HELM_DRIVER names a storage whose records belay does not read";
        return (Apply::Unknown, why.to_owned());
    }
    match cluster.apply_method(namespace, release).await {
        RecordAnswer::Method(ApplyMethod::ServerSide, name) => {
            (Apply::ServerSide, format!("the record {name}"))
        }
        RecordAnswer::Method(ApplyMethod::ClientSide, name) => {
            (Apply::ClientSide, format!("the record {name}"))
        }
        RecordAnswer::Silent(why) => (Apply::Unknown, why),
    }
}
