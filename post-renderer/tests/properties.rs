//! Properties that hold for any input, and for manifests in any style.

use belay_post_renderer::{
    fuzzing, scan,
    splice::{self, Action, Edit, Outcome},
    split, verify,
};
use proptest::prelude::*;
use serde_yaml::Value;

/// How the generated manifest writes one container.
#[derive(Debug, Clone)]
struct Style {
    flow: bool,
    image_first: bool,
    quotes: char,
    comment: bool,
    gap: usize,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Scalar,
    NextLine,
    Block,
    Null,
    Anchored,
    Explicit,
}

fn style() -> impl Strategy<Value = Style> {
    let shape = prop_oneof![
        4 => Just(Shape::Scalar),
        1 => Just(Shape::NextLine),
        1 => Just(Shape::Block),
        1 => Just(Shape::Null),
        1 => Just(Shape::Anchored),
        1 => Just(Shape::Explicit),
    ];
    let quotes = prop_oneof![Just(' '), Just('\''), Just('"')];
    (any::<bool>(), any::<bool>(), quotes, any::<bool>(), 0..4usize, shape).prop_map(
        |(flow, image_first, quotes, comment, gap, shape)| Style {
            flow,
            image_first,
            quotes,
            comment,
            gap,
            shape,
        },
    )
}

fn scalar(text: &str, quotes: char) -> String {
    if quotes == ' ' { text.to_owned() } else { format!("{quotes}{text}{quotes}") }
}

/// A container, indented by `indent` after its dash.
fn container(index: usize, style: &Style, indent: usize) -> String {
    let image = scalar(&format!("registry.example.com:5000/app{index}:1.0.{index}"), style.quotes);
    let gap = " ".repeat(style.gap);
    if style.flow {
        let name = format!("name:{gap} c{index}");
        let image = match style.shape {
            // libyaml refuses `image:}`.
            Shape::Null => format!("image: {gap}"),
            _ => format!("image:{gap} {image}"),
        };
        let (one, two) = if style.image_first { (image, name) } else { (name, image) };
        return format!("{{{gap}{one},{gap} tty: true, {two}{gap}}}\n");
    }
    let comment = if style.comment { " # image: no, 'no'" } else { "" };
    let pad = " ".repeat(indent);
    let image = match style.shape {
        Shape::Scalar => format!("image:{gap} {image}{comment}\n"),
        Shape::NextLine => format!("image:{comment}\n{pad}{gap} {image}{comment}\n"),
        Shape::Block => format!("image: >-{comment}\n{pad}  {}\n", image.trim_matches(['\'', '"'])),
        Shape::Null => format!("image:{comment}\n"),
        Shape::Anchored => format!("image: &a{index}{gap} {image}{comment}\n"),
        Shape::Explicit => format!("? image\n{pad}:{gap} {image}{comment}\n"),
    };
    let name = format!("name: c{index}{comment}\n");
    let (one, two) = if style.image_first { (image, name) } else { (name, image) };
    format!("{one}{pad}# between\n{pad}{two}{pad}args: [a, 'b', \"image: x\"]{comment}\n")
}

fn manifest(styles: &[Style], deep: usize, crlf: bool, newline: bool) -> String {
    let mut text = "---\n# Source: a.yaml\nkind: ConfigMap\ndata: {a: |-}\n".replace("|-", "1");
    text.push_str("---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n");
    text.push_str("  replicas: 0x10\n  template:\n    spec:\n      containers:\n");
    for (index, style) in styles.iter().enumerate() {
        let lead = format!("{:deep$}-{:deep$} ", "", "", deep = deep + 1);
        text.push_str("      ");
        text.push_str(&lead);
        text.push_str(&container(index, style, 6 + lead.len()));
    }
    if !newline {
        text.truncate(text.trim_end().len());
    }
    if crlf { text.replace('\n', "\r\n") } else { text }
}

/// Container names with their images.
type Images = Vec<(String, Option<String>)>;

/// The images of the only Deployment as `serde_yaml` reads them, and the document without them.
fn read_again(text: &[u8]) -> Option<(Images, Value)> {
    let mut value: Value = serde_yaml::from_slice(split::split(text)[1].body(text)).ok()?;
    let mut images = Vec::new();
    let containers = &mut value["spec"]["template"]["spec"]["containers"];
    for container in containers.as_sequence_mut()? {
        let container = container.as_mapping_mut()?;
        let image = container.remove("image");
        let image = image.as_ref().and_then(Value::as_str).map(str::to_owned);
        images.push((container.get("name")?.as_str()?.to_owned(), image));
    }
    Some((images, value))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn joining_what_was_split_gives_the_input(
        pieces in prop::collection::vec(
            prop_oneof![
                Just(b"---".to_vec()), Just(b"\n---".to_vec()), Just(b"\r\n".to_vec()),
                Just(b"\xef\xbb\xbf".to_vec()), Just(b"# c\n".to_vec()), Just(b"a: |\n  ---\n".to_vec()),
                prop::collection::vec(any::<u8>(), 0..8),
            ],
            0..24,
        ),
    ) {
        let input = pieces.concat();
        let documents = split::split(&input);
        let joined: Vec<u8> =
            documents.iter().flat_map(|document| input[document.range.clone()].to_vec()).collect();
        prop_assert_eq!(joined, input);
    }

    #[test]
    fn nothing_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        fuzzing::fuzz(&bytes);
    }

    #[test]
    fn nothing_panics_on_mangled_manifests(
        styles in prop::collection::vec(style(), 1..4),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..6usize, "[-\\[\\]{}:,&*!|>'\"#%@`? \n\t\\\\a]{0,3}"), 1..4),
    ) {
        let mut text = manifest(&styles, 0, false, true);
        for (at, length, with) in cuts {
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            text.replace_range(start..end, &with);
        }
        fuzzing::fuzz(text.as_bytes());
    }

    #[test]
    fn only_the_intended_image_differs(
        styles in prop::collection::vec(style(), 1..5),
        deep in 0..3usize,
        crlf: bool,
        newline: bool,
        chosen: prop::sample::Index,
        strip: bool,
        live in prop_oneof![
            Just("ghcr.io/acme/web:1.4.2"), Just("1.10"), Just("yes"), Just("0o17"),
            Just("a b: c #d, {e}'\"\\"), Just("web@sha256:00"),
        ],
    ) {
        let text = manifest(&styles, deep, crlf, newline);
        let input = text.as_bytes();
        let read = scan::read(input, "belay.dev").unwrap();
        prop_assert_eq!(read.targets.len(), 1);
        let container = chosen.index(styles.len());
        let action =
            if strip { Action::Strip { image: live } } else { Action::Preserve { image: live } };
        let edits = [Edit { target: 0, container, action }];
        let spliced = splice::apply(&read, &edits).unwrap();
        verify::check(&read, &edits, &spliced).unwrap();
        prop_assert_eq!(
            spliced.outcomes[0],
            if strip { Outcome::Stripped } else { Outcome::Preserved }
        );

        let mut expected = read_again(input).unwrap();
        expected.0[container].1 = (!strip).then(|| live.to_owned());
        prop_assert_eq!(read_again(&spliced.bytes).unwrap(), expected);
        prop_assert_eq!(spliced.bytes.contains(&b'\r'), crlf);
        let comments = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches("# between").count();
        // An entry's own comment goes with it; a comment line stays.
        prop_assert_eq!(comments(&spliced.bytes), comments(input));
        let untouched = &split::split(input)[0].range;
        prop_assert_eq!(&spliced.bytes[untouched.clone()], &input[untouched.clone()]);
    }

    #[test]
    fn without_a_decision_nothing_changes(
        styles in prop::collection::vec(style(), 1..4),
        crlf: bool,
        newline: bool,
    ) {
        let text = manifest(&styles, 1, crlf, newline);
        let read = scan::read(text.as_bytes(), "belay.dev").unwrap();
        let spliced = splice::apply(&read, &[]).unwrap();
        verify::check(&read, &[], &spliced).unwrap();
        prop_assert_eq!(spliced.bytes.as_ref(), text.as_bytes());
    }
}
