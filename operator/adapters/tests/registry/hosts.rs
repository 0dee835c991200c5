//! Where requests go, and where they never go.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use belay_adapters::registry::{Image, Lookup, Registry, Settings};
use rstest::rstest;

use crate::fake::{DIGEST, Fake, Trap, answer, basic, bob, demands, found, settings, word};

#[rstest]
#[case::by_name("evil.test:PORT")]
#[case::by_address("127.0.0.1:PORT")]
#[case::by_number("2130706433:PORT")]
#[case::by_short_address("127.1:PORT")]
#[tokio::test]
async fn an_image_on_this_machine_is_not_asked_for(#[case] host: &str) {
    let trap = Trap::new().await;
    let text = format!("{}/acme/web:v1", host.replace("PORT", &trap.address().port().to_string()));
    let client = Registry::new(settings(&[])).unwrap();
    let head = client.head(&Image::parse(&text).unwrap(), Some(&bob())).await;
    assert_eq!(word(&head), "not-allowed Manifest", "{head:?}");
    trap.assert_untouched();
}

#[rstest]
#[case::metadata("169.254.169.254")]
#[case::identity("169.254.170.23")]
#[case::private("10.96.0.1")]
#[case::unspecified("0.0.0.0:PORT")]
#[tokio::test]
async fn neither_is_one_on_a_private_network(#[case] host: &str) {
    let trap = Trap::new().await;
    let host = host.replace("PORT", &trap.address().port().to_string());
    let client = Registry::new(settings(&[])).unwrap();
    let image = Image::parse(&format!("{host}/acme/web:v1")).unwrap();
    assert_eq!(word(&client.head(&image, None).await), "not-allowed Manifest");
    trap.assert_untouched();
}

#[tokio::test]
async fn a_name_is_connected_to_at_the_address_that_was_checked() {
    let (trap, lookups) = (Trap::new().await, Arc::new(AtomicUsize::new(0)));
    // A name that shows another address each time it is asked for, as an attacker's does.
    let counted = lookups.clone();
    let lookup = Lookup::of(move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        let public = IpAddr::V4(Ipv4Addr::new(203, 1, 113, 1));
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        std::future::ready(Ok(if first { vec![public, local] } else { vec![local] }))
    });
    let client = Registry::new(Settings { lookup, ..settings(&[]) }).unwrap();
    let text = format!("rebind.test:{}/acme/web:v1", trap.address().port());
    let image = Image::parse(&text).unwrap();
    for number in 1..=3 {
        let head = client.head(&image, Some(&bob())).await;
        assert_eq!(word(&head), "not-allowed Manifest", "{head:?}");
        assert_eq!(lookups.load(Ordering::SeqCst), number, "resolved once for each request");
    }
    trap.assert_untouched();
}

#[rstest]
#[case::loopback_by_address("http://TRAP/")]
#[case::loopback_by_tls("https://TRAP/")]
#[case::loopback_by_name("https://evil.test:PORT/")]
#[case::metadata("http://169.254.169.254/latest/meta-data/")]
#[case::metadata_by_tls("https://169.254.169.254/latest/meta-data/")]
#[case::without_a_host("file:///etc/passwd")]
#[tokio::test]
async fn a_redirect_into_the_machine_is_refused(
    #[case] to: &'static str,
    #[values(301, 302, 303, 307, 308)] status: u16,
    #[values(true, false)] has_credential: bool,
) {
    let trap = Trap::new().await;
    let address = trap.address();
    let fake = Fake::start(move |seen| {
        if has_credential && seen.auth.is_empty() {
            return demands("Basic");
        }
        let to = to.replace("TRAP", &address.to_string());
        let to = to.replace("PORT", &address.port().to_string());
        answer(status, &[("location", &to)], "")
    })
    .await;
    let head = fake.head(has_credential.then(bob).as_ref()).await;
    assert_eq!(word(&head), "not-allowed Manifest", "{head:?}");
    trap.assert_untouched();
}

#[tokio::test]
async fn a_redirect_is_followed_without_the_credential() {
    let other = Fake::start(|_| found()).await;
    let to = format!("http://{}/elsewhere", other.address);
    let fake = Fake::start(move |seen| {
        if seen.auth == basic("bob", "hunter2") {
            return answer(307, &[("location", &to)], "");
        }
        demands("Basic")
    })
    .await;
    let named = [fake.address, other.address].map(|it| format!("http://{it}"));
    let client = Registry::new(settings(&named.each_ref().map(String::as_str))).unwrap();
    let head = client.head(&fake.image(), Some(&bob())).await;
    assert_eq!(word(&head), format!("found {DIGEST}"));
    assert_eq!(other.lines(), ["HEAD /elsewhere"]);
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let fake =
        Fake::start(|seen| answer(302, &[("location", &format!("{}x", seen.path))], "")).await;
    assert_eq!(word(&fake.head(None).await), "upstream Manifest 302");
    assert_eq!(fake.lines().len(), 4);
}

#[tokio::test]
async fn a_host_that_is_named_for_tls_is_not_asked_without() {
    let fake = Fake::start(|_| found()).await;
    let client = Registry::new(settings(&[&fake.address.to_string()])).unwrap();
    assert_eq!(word(&client.head(&fake.image(), None).await), "transport");
    assert_eq!(fake.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn a_host_that_is_named_on_one_port_is_not_open_on_others() {
    let (trap, fake) = (Trap::new().await, Fake::start(|_| found()).await);
    let named = format!("http://registry.test:{}", fake.port());
    let client = Registry::new(settings(&[&named])).unwrap();
    let image = |port: u16| Image::parse(&format!("registry.test:{port}/acme/web:v1")).unwrap();
    let head = client.head(&image(fake.port()), None).await;
    assert_eq!(word(&head), format!("found {DIGEST}"));
    let head = client.head(&image(trap.address().port()), None).await;
    assert_eq!(word(&head), "not-allowed Manifest");
    trap.assert_untouched();
}
