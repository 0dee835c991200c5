//! Reads a repository: content first, then which repository it is.
//!
//! In that order a name that changes hands in between yields the content of the former repository
//! under the id of the new one, which nobody follows; the other way round it would be the content of a
//! stranger under the id that is trusted.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use super::{
    Client, ForgeError, Identity, Listing, Reading, Release, RepoSlug, Unknown, Wants,
    reading::{Outcome, RepositoryBody, Requests},
};
use crate::{clock::between, object::Object};

/// Releases a page: the first, and what a page that is too large is asked for instead.
const PER_PAGE: [u32; 3] = [100, 30, 10];
/// Pages that are read at most.
const PAGES: u32 = 10;
/// A name is looked up again at least so often, although nothing changed.
const RECHECK: Duration = Duration::from_hours(1);
/// A repository may be read by name, then by the id it moved to, then by the name that somebody
/// else took meanwhile.
const ATTEMPTS: u32 = 3;
/// What stands for itself in a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Reads repositories with one [`Client`], and remembers where they went.
#[derive(Debug)]
pub struct Forge {
    client: Client,
    places: Mutex<HashMap<RepoSlug, Place>>,
}

/// What is remembered of a name.
#[derive(Debug, Clone, Default)]
struct Place {
    /// The repository has another name now and is read by its id.
    by_id: Option<u64>,
    identity: Option<Identity>,
    /// When the identity was looked up; none while content was read that it does not cover.
    verified: Option<Timestamp>,
    /// Index into [`PER_PAGE`].
    size: usize,
}

/// Why an attempt is made again.
enum Stop {
    /// With what the place says now.
    Again,
}

impl Forge {
    /// A forge that has read nothing yet.
    pub fn new(client: Client) -> Self {
        Self { client, places: Mutex::default() }
    }

    /// What it asks with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Reads what is wanted of a repository. What could not be read is in the answer, as such.
    pub async fn read(&self, repo: &RepoSlug, wants: &Wants) -> Reading {
        let mut place = self.places().get(repo).cloned().unwrap_or_default();
        let mut requests = Requests::default();
        for _ in 0..ATTEMPTS {
            let mut pass = Pass { client: &self.client, requests, fresh: false };
            let done = pass.attempt(repo, wants, &mut place).await;
            requests = pass.requests;
            if let Ok(mut reading) = done {
                self.places().insert(repo.clone(), place);
                reading.requests = requests;
                return reading;
            }
        }
        let why = failed("GitHub redirects the repository again and again");
        Reading { requests, ..Reading::unknown(self.client.now(), wants, &why) }
    }

    /// Forgets what is remembered of a name that nobody follows any more.
    pub fn forget(&self, repo: &RepoSlug) {
        self.places().remove(repo);
    }

    fn places(&self) -> MutexGuard<'_, HashMap<RepoSlug, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Pass<'a> {
    client: &'a Client,
    requests: Requests,
    /// Whether any answer was other than the last time.
    fresh: bool,
}

/// A part of a reading: a value, `None` for 404, or why it is not known.
type Part<T> = Result<Option<T>, Unknown>;

impl Pass<'_> {
    async fn attempt(
        &mut self,
        repo: &RepoSlug,
        wants: &Wants,
        place: &mut Place,
    ) -> Result<Reading, Stop> {
        let at = self.client.now();
        let base = match place.by_id {
            Some(id) => format!("/repositories/{id}"),
            None => format!("/repos/{repo}"),
        };
        let mut latest = None;
        if wants.latest {
            let path = format!("{base}/releases/latest");
            latest = Some(self.content::<Release, _>(&path, place, Release::clone).await?);
        }
        let mut list = None;
        if wants.list {
            list = Some(self.list(&base, place).await?);
        }
        let mut tags = BTreeMap::new();
        for tag in &wants.tags {
            let path = format!("{base}/releases/tags/{}", utf8_percent_encode(tag, SEGMENT));
            let part = self.content::<Release, _>(&path, place, Release::clone).await?;
            tags.insert(tag.clone(), part);
        }
        let identity = self.identity(repo, place, at).await?;
        let settle = |part: Part<Release>| match (part, &identity) {
            (_, Err(Unknown::Hidden)) => Err(Unknown::Hidden),
            // 404 means "none" only where the repository itself can be read.
            (Ok(None), Err(why)) => Err(why.clone()),
            (part, _) => part,
        };
        let list = list.map(|part| match (part, &identity) {
            (_, Err(Unknown::Hidden)) => Err(Unknown::Hidden),
            (Ok(Some(listing)), _) => Ok(listing),
            (Err(why), _) => Err(why),
            (Ok(None), Err(why)) => Err(why.clone()),
            // A repository that can be read has a list, be it empty.
            (Ok(None), Ok(_)) => Err(failed("GitHub has the repository and not its releases")),
        });
        Ok(Reading {
            at,
            latest: latest.map(&settle),
            list,
            tags: tags.into_iter().map(|(tag, part)| (tag, settle(part))).collect(),
            identity,
            requests: Requests::default(),
        })
    }

    /// One piece of content.
    async fn content<T, V>(
        &mut self,
        path: &str,
        place: &mut Place,
        value: impl FnOnce(&T) -> V,
    ) -> Result<Part<V>, Stop>
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        let outcome = self.get::<T>(path).await.into();
        self.part(outcome, place).map(|part| part.map(|it| it.map(|page| value(&page.value))))
    }

    async fn list(&mut self, base: &str, place: &mut Place) -> Result<Part<Listing>, Stop> {
        'size: loop {
            let per_page = PER_PAGE.get(place.size).copied().unwrap_or(10);
            let mut listing = Listing::default();
            for number in 1..=PAGES {
                let path = format!("{base}/releases?per_page={per_page}&page={number}");
                let answer = self.get::<Vec<Release>>(&path).await;
                let too_large = matches!(answer, Err(ForgeError::TooLarge { .. }));
                if too_large && place.size + 1 < PER_PAGE.len() {
                    place.size += 1;
                    continue 'size;
                }
                match self.part(answer.into(), place)? {
                    Ok(Some(page)) => {
                        listing.releases.extend(page.value.iter().cloned());
                        listing.truncated = page.more;
                        if !page.more {
                            break;
                        }
                    }
                    Ok(None) => return Ok(Ok(None)),
                    Err(why) => return Ok(Err(why)),
                }
            }
            return Ok(Ok(Some(listing)));
        }
    }

    fn part<T>(
        &mut self,
        outcome: Outcome<T>,
        place: &mut Place,
    ) -> Result<Part<super::Page<T>>, Stop> {
        match outcome {
            Outcome::Found { page, fresh } => {
                self.changed(fresh, place);
                Ok(Ok(Some(page)))
            }
            Outcome::Missing => {
                self.changed(true, place);
                Ok(Ok(None))
            }
            Outcome::Moved(Some(id)) if place.by_id != Some(id) => {
                *place = Place { by_id: Some(id), size: place.size, ..Place::default() };
                Err(Stop::Again)
            }
            Outcome::Moved(_) => Ok(Err(elsewhere())),
            Outcome::Unknown(why) => Ok(Err(why)),
        }
    }

    fn changed(&mut self, fresh: bool, place: &mut Place) {
        if fresh {
            self.fresh = true;
            // Until the name was looked up, also if that fails now and the next content is a 304.
            place.verified = None;
        }
    }

    /// Which repository it is: from memory while nothing changed, else by its name.
    async fn identity(
        &mut self,
        repo: &RepoSlug,
        place: &mut Place,
        now: Timestamp,
    ) -> Result<Result<Identity, Unknown>, Stop> {
        let recent = place.verified.is_some_and(|at| between(at, now) < RECHECK);
        if let (true, Some(identity)) = (recent, &place.identity) {
            return Ok(Ok(identity.clone()));
        }
        let by_name = self.get::<Object<RepositoryBody>>(&format!("/repos/{repo}")).await.into();
        let found = match by_name {
            Outcome::Found { page, .. } => {
                if place.by_id.is_some_and(|id| id != page.value.0.id) {
                    // Somebody else has the name now. What was read by the id is not theirs.
                    *place = Place { size: place.size, ..Place::default() };
                    return Err(Stop::Again);
                }
                place.by_id = None;
                Ok(identity(&page.value.0, false))
            }
            Outcome::Moved(Some(id)) if place.by_id != Some(id) => {
                *place = Place { by_id: Some(id), size: place.size, ..Place::default() };
                return Err(Stop::Again);
            }
            Outcome::Moved(None) => Err(elsewhere()),
            Outcome::Moved(Some(id)) => self.by_id(id).await,
            Outcome::Missing => match place.by_id {
                Some(id) => self.by_id(id).await,
                None => Err(Unknown::Hidden),
            },
            Outcome::Unknown(why) => Err(why),
        };
        let Ok(identity) = &found else {
            return Ok(found);
        };
        let before = place.identity.replace(identity.clone());
        if before.is_some_and(|before| before.id != identity.id) {
            // The content may be the former repository's.
            return Err(Stop::Again);
        }
        place.verified = Some(now);
        Ok(found)
    }

    async fn by_id(&mut self, id: u64) -> Result<Identity, Unknown> {
        match self.get::<Object<RepositoryBody>>(&format!("/repositories/{id}")).await.into() {
            Outcome::Found { page, .. } if page.value.0.id == id => {
                Ok(identity(&page.value.0, true))
            }
            Outcome::Found { .. } => Err(failed("GitHub has another repository under the id")),
            Outcome::Missing => Err(Unknown::Hidden),
            Outcome::Moved(_) => Err(elsewhere()),
            Outcome::Unknown(why) => Err(why),
        }
    }

    async fn get<T>(&mut self, path: &str) -> Result<super::Answer<T>, ForgeError>
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        let answer = self.client.get(path).await;
        let asked = !matches!(answer, Ok(super::Answer::Throttled { asked: false, .. }));
        self.requests.all += u32::from(asked);
        let unchanged = matches!(answer, Ok(super::Answer::NotModified(_)));
        self.requests.not_modified += u32::from(unchanged);
        answer
    }
}

fn identity(body: &RepositoryBody, moved: bool) -> Identity {
    let full_name = belay_api::limits::clip(&body.full_name, belay_api::limits::PRINCIPAL);
    Identity { id: body.id, full_name, private: body.private, moved }
}

fn failed(why: &str) -> Unknown {
    Unknown::Failed { why: why.to_owned(), category: "unexpected" }
}

fn elsewhere() -> Unknown {
    failed("GitHub redirects the repository to a place that is not followed")
}
