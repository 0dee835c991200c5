//! Where the objects come from: files, standard input, or the API server.

use std::path::Path;

use belay_api::ReleaseTarget;
use serde::Deserialize as _;
use serde_json::Value;

use super::{Subject, discover};
use crate::{
    Error, Session,
    cli::owners::OwnersArgs,
    error::Class,
    read::{
        Reader,
        api::{kind_of, resource},
    },
};

/// The most that is read of one file.
const MAX_FILE: u64 = 64 << 20;

/// All objects that the command line names.
pub(super) async fn subjects(
    args: &OwnersArgs,
    session: &mut Session<'_>,
) -> Result<Vec<Subject>, Error> {
    let prefix = session.global.annotation_prefix.clone();
    if args.filename.is_empty() {
        let (value, told) = live(&args.object, session).await?;
        let prefix = prefix.or(told).unwrap_or_default();
        return Ok(vec![Subject::new(value, true, prefix)?]);
    }
    let mut subjects = Vec::new();
    for file in &args.filename {
        let name = file.display().to_string();
        let bytes = read(file, session)?;
        for value in objects(&name, &bytes)? {
            subjects.push(Subject::new(value, false, prefix.clone().unwrap_or_default())?);
        }
    }
    Ok(subjects)
}

fn read(file: &Path, session: &mut Session<'_>) -> Result<Vec<u8>, Error> {
    use std::io::Read as _;
    let fail = |error: std::io::Error| Error::other(format!("read {}: {error}", file.display()));
    if file == Path::new("-") {
        return session.out.read_stdin(MAX_FILE).map_err(fail);
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(fail)?;
    opened.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(fail)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE) {
        return Err(Error::other(format!("read {}: it is over 64 MiB", file.display())));
    }
    Ok(bytes)
}

/// The objects in a text of YAML documents or JSON, those of Lists one by one.
fn objects(name: &str, bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::other(format!("read {name}: it is not UTF-8")))?;
    let mut found = Vec::new();
    // JSON may be indented with tabs, which YAML does not know.
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        add(name, 1, value, &mut found)?;
    } else {
        for (index, document) in serde_yaml::Deserializer::from_str(text).enumerate() {
            let number = index + 1;
            let value = Value::deserialize(document).map_err(|error| {
                Error::other(format!("read {name}: document {number}: {error}"))
            })?;
            add(name, number, value, &mut found)?;
        }
    }
    if found.is_empty() {
        return Err(Error::other(format!("read {name}: there is no object in it")));
    }
    Ok(found)
}

fn add(name: &str, number: usize, value: Value, into: &mut Vec<Value>) -> Result<(), Error> {
    match value {
        Value::Null => Ok(()),
        Value::Object(mut fields) => {
            let is_list = fields.get("kind").and_then(Value::as_str).is_some_and(|kind| {
                kind.ends_with("List") && fields.get("items").is_some_and(Value::is_array)
            });
            if is_list && let Some(Value::Array(items)) = fields.remove("items") {
                return items.into_iter().try_for_each(|item| add(name, number, item, into));
            }
            into.push(Value::Object(fields));
            Ok(())
        }
        _ => Err(Error::other(format!("read {name}: document {number} is not an object"))),
    }
}

/// One object of the API server, and the prefix that its ReleaseTarget tells.
async fn live(
    words: &[String],
    session: &mut Session<'_>,
) -> Result<(Value, Option<belay_api::AnnotationPrefix>), Error> {
    let (word, name) = match words {
        [] => {
            return Err(Error::usage("name an object: NAME, KIND/NAME, or a file with -f")
                .hint("kubectl release owners web --path image"));
        }
        [one] => match one.split_once('/') {
            Some((kind, name)) => (Some(kind), name),
            None => (None, one.as_str()),
        },
        [kind, name, ..] => (Some(kind.as_str()), name.as_str()),
    };
    let cluster = session.cluster()?;
    let reader = Reader::new(cluster.clone());
    let namespace = cluster.namespace.as_str();
    let kind = if let Some(word) = word {
        discover(&reader, word).await?
    } else {
        let target = reader.get(&kind_of::<ReleaseTarget>(), Some(namespace), name).await;
        // Without Belay, or the right to read its kinds, a bare name is that of a Deployment.
        let target = target.ok().flatten();
        let status = |at: &str| {
            let text = target.as_ref()?.data.pointer(at)?.as_str()?;
            Some(text.to_owned())
        };
        let told = status("/status/annotationPrefix").and_then(|text| text.parse().ok());
        let kind = status("/status/workload/kind").zip(status("/status/workload/name"));
        return found(&reader, kind, namespace, name).await.map(|value| (value, told));
    };
    let namespace = kind.namespaced.then_some(namespace);
    let object = reader.get(&kind.resource, namespace, name).await?;
    let object = object.ok_or_else(|| missing(&resource(&kind.resource), name))?;
    Ok((to_value(&object)?, None))
}

/// The workload of a target, or the Deployment of that name.
async fn found(
    reader: &Reader,
    workload: Option<(String, String)>,
    namespace: &str,
    name: &str,
) -> Result<Value, Error> {
    let (kind, name) = workload.unwrap_or_else(|| ("Deployment".to_owned(), name.to_owned()));
    let kind = discover(reader, &kind.to_ascii_lowercase()).await?;
    let object = reader.get(&kind.resource, Some(namespace), &name).await?;
    let object = object.ok_or_else(|| {
        missing(&resource(&kind.resource), &name)
            .hint("for another kind: kubectl release owners KIND/NAME")
    })?;
    to_value(&object)
}

fn missing(resource: &str, name: &str) -> Error {
    Error::new(Class::NotFound, format!("{resource} \"{name}\" not found")).reason("NotFound")
}

fn to_value(object: &kube::api::DynamicObject) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| Error::other(format!("read the object: {error}")))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::one("kind: A\nmetadata: {name: a}\n", &["A"])]
    #[case::documents("---\nkind: A\n---\n---\nkind: B\n", &["A", "B"])]
    #[case::list("kind: List\nitems:\n- kind: A\n- kind: B\n", &["A", "B"])]
    #[case::typed_list("kind: PodList\nitems:\n- kind: Pod\n---\nkind: C\n", &["Pod", "C"])]
    #[case::json("{\n\t\"kind\": \"A\"\n}", &["A"])]
    #[case::not_a_list("kind: AllowList\n", &["AllowList"])]
    fn objects_are_found(#[case] text: &str, #[case] expected: &[&str]) {
        let found = objects("f", text.as_bytes()).unwrap();
        let kinds: Vec<_> = found.iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, expected);
    }

    #[rstest]
    #[case::empty(b"" as &[u8], "no object")]
    #[case::scalar(b"hello", "not an object")]
    #[case::sequence(b"- a\n", "not an object")]
    #[case::broken(b"a: [\n", "document 1")]
    #[case::second_broken(b"a: 1\n---\nb: {\n", "document 2")]
    #[case::not_text(b"\xff\xfe", "UTF-8")]
    fn what_holds_no_object_is_an_error(#[case] bytes: &[u8], #[case] words: &str) {
        let error = objects("f", bytes).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
