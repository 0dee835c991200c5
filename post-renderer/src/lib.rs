//! Belay's Helm post-renderer: bytes in, bytes out, and between them one look at each workload.
//!
//! ```text
//! stdin ─► split ─► scan ─► one GET per target ─► decide ─► splice ─► verify ─► stdout
//! ```
//!
//! The core is pure: no I/O, no cluster, no clock.
//!
//! [`split`] cuts the input into documents as Helm does, [`scan`] finds the workloads in it and
//! where their images stand, [`decide`] is the decision table, [`splice`] edits nothing but the
//! bytes of an image, and [`verify`] reads the result again with two independent parsers before
//! anybody may write it. Around it, [`helm`] reads the command line of the Helm that runs us,
//! [`locate`] settles where Helm applies, [`cluster`] asks there, [`report`] tells what happened, and
//! [`program`] puts them together as the binary `belay`. Numbers in comments ("rule 5.4") are those of the post-renderer
//! specification.
//!
//! ```
//! use belay_post_renderer::{scan, splice::{self, Action, Edit}, verify};
//!
//! let input = b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    \
//!     spec:\n      containers:\n      - name: app\n        image: web:1.0.0 # chart\n";
//! let manifest = scan::read(input, "belay.dev")?;
//! let container = &manifest.targets[0].containers[0];
//! assert_eq!(container.image.as_deref(), Some("web:1.0.0"));
//!
//! let edits = [Edit { target: 0, container: 0, action: Action::Preserve { image: "web:1.4.2" } }];
//! let spliced = splice::apply(&manifest, &edits)?;
//! verify::check(&manifest, &edits, &spliced)?;
//! assert!(spliced.bytes.ends_with(b"        image: web:1.4.2 # chart\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cluster;
pub mod decide;
#[doc(hidden)]
pub mod fuzzing;
pub mod helm;
pub mod locate;
pub mod program;
pub mod report;
pub mod scan;
mod shares;
pub mod splice;
pub mod split;
pub mod verify;

/// The largest input that is read, in bytes (rule 5.10).
pub const MAX_INPUT: usize = 256 << 20;

/// The deepest nesting of a document that is read (rule 5.10).
pub const MAX_NESTING: usize = 512;
