//! Who asks, as the API server knows them.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{Api, api::PostParams};

use crate::{Session, read::Reader};

/// The name of the user; what the machine says, marked so, where the API server does not tell.
pub(super) async fn principal(reader: &Reader, session: &Session<'_>) -> String {
    let api: Api<SelfSubjectReview> = Api::all(reader.cluster.client.clone());
    let review = SelfSubjectReview::default();
    let params = PostParams::default();
    let asked = reader.within("create selfsubjectreviews", api.create(&params, &review)).await;
    let told = asked.ok().and_then(|review| review.status?.user_info?.username);
    let told = told.filter(|name| !name.is_empty()).unwrap_or_else(|| {
        let login = session.out.variable("USER").or_else(|| session.out.variable("USERNAME"));
        login.map_or_else(|| "unknown".to_owned(), |login| format!("{login} (not verified)"))
    });
    belay_api::limits::clip(&told, belay_api::limits::PRINCIPAL)
}
