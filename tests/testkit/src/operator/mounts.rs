//! Volumes as folders of the run, as a kubelet would fill them.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    fs,
    path::{Component, Path, PathBuf},
};

use k8s_openapi::api::core::v1::{ConfigMap, KeyToPath, PodSpec, Secret, Volume};
use kube::{Api, Client, Resource, core::NamespaceResourceScope};
use serde::de::DeserializeOwned;

use crate::{cluster::chain, process::write_private};

/// Mount points of a container and the folders that stand for them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts(Vec<(String, PathBuf)>);

/// Files of a volume, by path within it.
type Files = BTreeMap<String, String>;

impl Mounts {
    /// Fills a folder below `folder` for each mount of the first container, anew. The error says what
    /// a kubelet would wait for, or what has no counterpart here.
    pub(super) async fn make(
        client: &Client,
        namespace: &str,
        pod: &PodSpec,
        folder: &Path,
    ) -> Result<Self, String> {
        let file = |error: std::io::Error| format!("could not fill {}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(file)?;
        }
        let mut mounts = Self::default();
        let first = pod.containers.first();
        for mount in first.iter().flat_map(|container| container.volume_mounts.iter().flatten()) {
            if mount.sub_path.is_some() || mount.sub_path_expr.is_some() {
                return Err(format!("its mount {} is of a part of a volume", mount.mount_path));
            }
            let mut volumes = pod.volumes.iter().flatten();
            let volume = volumes.find(|volume| volume.name == mount.name);
            let volume = volume.ok_or_else(|| format!("it has no volume {}", mount.name))?;
            let own = folder.join(&mount.name);
            fs::create_dir_all(&own).map_err(file)?;
            for (path, text) in files(client, namespace, volume).await? {
                write(&own, &path, &text)?;
            }
            mounts.0.push((mount.mount_path.trim_end_matches('/').to_owned(), own));
        }
        // The longest first: a mount point may lie within another.
        mounts.0.sort_by_key(|(point, _)| std::cmp::Reverse(point.len()));
        Ok(mounts)
    }

    /// These mounts, for tests.
    #[cfg(test)]
    pub(super) fn of<const N: usize>(mounts: [(&str, &str); N]) -> Self {
        Self(mounts.map(|(point, folder)| (point.to_owned(), folder.into())).into())
    }

    /// An argument or variable with paths of this host: `/etc/x/file`, also after `--flag=`.
    pub(super) fn on_host(&self, word: &str) -> String {
        let (flag, path) = match word.split_once('=') {
            Some((flag, path)) => (format!("{flag}="), path),
            None => (String::new(), word),
        };
        for (point, folder) in &self.0 {
            if let Some(rest) = path.strip_prefix(point.as_str())
                && (rest.is_empty() || rest.starts_with('/'))
            {
                return format!("{flag}{}{rest}", folder.display());
            }
        }
        word.to_owned()
    }
}

fn write(folder: &Path, path: &str, text: &str) -> Result<(), String> {
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if !inside {
        return Err(format!("its path {path:?} leads out of the volume"));
    }
    let path = folder.join(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    }
    write_private(&path, text).map_err(|error| error.to_string())
}

async fn files(client: &Client, namespace: &str, volume: &Volume) -> Result<Files, String> {
    if volume.empty_dir.is_some() {
        return Ok(Files::new());
    }
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        let optional = source.optional.unwrap_or_default();
        return secret(client, namespace, name, source.items.as_deref(), optional).await;
    }
    if let Some(source) = &volume.config_map {
        let optional = source.optional.unwrap_or_default();
        return config_map(client, namespace, &source.name, source.items.as_deref(), optional)
            .await;
    }
    let mut files = Files::new();
    let projected = volume.projected.as_ref().and_then(|projected| projected.sources.as_ref());
    for source in projected.ok_or_else(|| unknown(volume))? {
        files.extend(match (&source.secret, &source.config_map) {
            (Some(source), None) => {
                let optional = source.optional.unwrap_or_default();
                secret(client, namespace, &source.name, source.items.as_deref(), optional).await?
            }
            (None, Some(source)) => {
                let (name, items) = (&source.name, source.items.as_deref());
                let optional = source.optional.unwrap_or_default();
                config_map(client, namespace, name, items, optional).await?
            }
            _ => return Err(unknown(volume)),
        });
    }
    Ok(files)
}

fn unknown(volume: &Volume) -> String {
    format!("its volume {} is of a kind that is not known here", volume.name)
}

async fn read<K>(client: &Client, namespace: &str, name: &str) -> Result<Option<K>, String>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let found = api.get_opt(name).await;
    found.map_err(|error| format!("could not read {} {name}: {}", K::kind(&()), chain(&error)))
}

async fn secret(
    client: &Client,
    namespace: &str,
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: bool,
) -> Result<Files, String> {
    let data = read(client, namespace, name).await?.map(|secret: Secret| {
        let data = secret.data.unwrap_or_default().into_iter();
        data.map(|(key, value)| (key, String::from_utf8_lossy(&value.0).into_owned())).collect()
    });
    select(&format!("Secret {namespace}/{name}"), data, items, optional)
}

async fn config_map(
    client: &Client,
    namespace: &str,
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: bool,
) -> Result<Files, String> {
    let data = read(client, namespace, name).await?;
    let data = data.map(|map: ConfigMap| map.data.unwrap_or_default());
    select(&format!("ConfigMap {namespace}/{name}"), data, items, optional)
}

/// The files of an object: all of its keys, or those that `items` name.
fn select(
    object: &str,
    data: Option<Files>,
    items: Option<&[KeyToPath]>,
    optional: bool,
) -> Result<Files, String> {
    let Some(mut data) = data else {
        return if optional {
            Ok(Files::new())
        } else {
            Err(format!("it mounts {object}, which does not exist"))
        };
    };
    let Some(items) = items else { return Ok(data) };
    let mut files = Files::new();
    for item in items {
        match data.remove(&item.key) {
            Some(text) => drop(files.insert(item.path.clone(), text)),
            None if optional => {}
            None => return Err(format!("{object} has no key {}", item.key)),
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/etc/a", "/x")]
    #[case("/etc/a/token", "/x/token")]
    #[case("--file=/etc/a/token", "--file=/x/token")]
    #[case("--file=/etc/a", "--file=/x")]
    #[case("/etc/ab/token", "/etc/ab/token")]
    #[case("--file=/other/etc/a", "--file=/other/etc/a")]
    #[case("/etc/a/inner/file", "/y/file")]
    #[case("run", "run")]
    fn paths_below_a_mount_point_are_changed(#[case] word: &str, #[case] expected: &str) {
        let mounts = Mounts::of([("/etc/a/inner", "/y"), ("/etc/a", "/x")]);
        assert_eq!(mounts.on_host(word), expected);
    }

    fn item(key: &str, path: &str) -> KeyToPath {
        KeyToPath { key: key.to_owned(), path: path.to_owned(), mode: None }
    }

    fn data() -> Files {
        [("a", "1"), ("b", "2")].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
    }

    #[rstest]
    #[case::all(Some(data()), None, false, Ok(vec![("a", "1"), ("b", "2")]))]
    #[case::one(Some(data()), Some(vec![item("b", "token")]), false, Ok(vec![("token", "2")]))]
    #[case::no_key(Some(data()), Some(vec![item("c", "token")]), false, Err("O has no key c"))]
    #[case::no_key_needed(Some(data()), Some(vec![item("c", "token")]), true, Ok(vec![]))]
    #[case::absent(None, None, false, Err("it mounts O, which does not exist"))]
    #[case::absent_and_optional(None, None, true, Ok(vec![]))]
    fn files_are_those_of_a_kubelet(
        #[case] data: Option<Files>,
        #[case] items: Option<Vec<KeyToPath>>,
        #[case] optional: bool,
        #[case] expected: Result<Vec<(&str, &str)>, &str>,
    ) {
        let found = select("O", data, items.as_deref(), optional);
        let expected = expected
            .map(|files| files.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
            .map_err(str::to_owned);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_path_that_leads_out_of_its_volume_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a/b", "x").unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("a/b")).unwrap(), "x");
        write(folder.path(), "../b", "x").unwrap_err();
        write(folder.path(), "/b", "x").unwrap_err();
    }
}
