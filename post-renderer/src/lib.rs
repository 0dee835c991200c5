//! The pure core of Belay's Helm post-renderer: bytes in, bytes out; no I/O, no cluster, no clock.
//!
//! ```text
//! stdin ─► split ─► scan ─► (one GET per target) ─► decide ─► splice ─► verify ─► stdout
//! ```
//!
//! [`split`] cuts the input into documents as Helm does, [`scan`] finds the workloads in it and
//! where their images stand, [`decide`] is the decision table, [`splice`] edits nothing but the
//! bytes of an image, and [`verify`] reads the result again with two independent parsers before
//! anybody may write it. Numbers in comments ("rule 5.4") are those of the post-renderer
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

pub mod decide;
#[doc(hidden)]
pub mod fuzzing;
pub mod scan;
pub mod splice;
pub mod split;
pub mod verify;

/// The largest input that is read, in bytes (rule 5.10).
pub const MAX_INPUT: usize = 256 << 20;

/// The deepest nesting of a document that is read (rule 5.10).
pub const MAX_NESTING: usize = 512;
