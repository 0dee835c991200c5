//! The registry of go-containerregistry.

use belay_adapters::registry::{Head, Image, Registry};
use belay_components::{Binary, Component, Components};
use belay_testkit::{process::Run, registry};

use crate::fake::{access, settings};

struct World {
    server: registry::Registry,
    client: Registry,
    // Stopped after the server.
    _run: Run,
}

impl World {
    async fn new() -> Self {
        let components = Components::from_env().unwrap();
        components.ensure(&[Component::Registry]).unwrap();
        let run = Run::start(components.cache(), "adapters-registry").unwrap();
        let binary = components.binary(Binary::Registry).unwrap();
        let server = registry::Registry::start_with(binary, &run).await.unwrap();
        let client = Registry::new(settings(&[&format!("http://{}", server.host())])).unwrap();
        Self { server, client, _run: run }
    }

    fn image(&self, rest: &str) -> Image {
        Image::parse(&format!("{}/{rest}", self.server.host())).unwrap()
    }
}

#[tokio::test]
async fn what_was_pushed_is_found_under_its_digest_and_for_its_platform() {
    let world = World::new().await;
    let pushed = world.server.push("acme/web", "v1").await.unwrap();
    let image = world.image("acme/web:v1");
    let (digest, access) = access(world.client.head(&image, None).await);
    assert_eq!(digest, pushed);
    let platforms = world.client.platforms(&image, &digest, &access).await.unwrap();
    assert_eq!(platforms.iter().map(ToString::to_string).collect::<Vec<_>>(), ["linux/amd64"]);

    let by_digest = world.image(&format!("acme/web@{pushed}"));
    let (digest, _) = crate::fake::access(world.client.head(&by_digest, None).await);
    assert_eq!(digest, pushed);
    for missing in ["acme/web:v2", "acme/nothing:v1"] {
        let head = world.client.head(&world.image(missing), None).await;
        assert!(matches!(head, Ok(Head::Missing)), "{head:?}");
    }
}

#[tokio::test]
async fn an_index_is_found_as_an_index() {
    let world = World::new().await;
    let single = world.server.push("acme/web", "single").await.unwrap();
    let kind = "application/vnd.oci.image.index.v1+json";
    let entry = |architecture: &str| {
        format!(
            r#"{{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,"digest":"{single}",
                "platform":{{"os":"linux","architecture":"{architecture}"}}}}"#
        )
    };
    let index = format!(
        r#"{{"schemaVersion":2,"mediaType":"{kind}","manifests":[{},{}]}}"#,
        entry("arm64"),
        entry("amd64")
    );
    let url = format!("http://{}/v2/acme/web/manifests/multi", world.server.host());
    let put = reqwest::Client::new().put(url).header("content-type", kind).body(index);
    assert_eq!(put.send().await.unwrap().status(), 201);
    let image = world.image("acme/web:multi");
    let head = world.client.head(&image, None).await.unwrap();
    let Head::Found { digest, media_type, access } = head else { panic!("{head:?}") };
    assert_eq!(media_type.as_deref(), Some(kind));
    let platforms = world.client.platforms(&image, &digest, &access).await.unwrap();
    let platforms: Vec<_> = platforms.iter().map(ToString::to_string).collect();
    assert_eq!(platforms, ["linux/amd64", "linux/arm64"]);
}
