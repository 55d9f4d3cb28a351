//! Holds what programs see of the crate `halite` to `halite/api.txt`, so that no change of it goes unnoticed:
//! `HALITE_WRITE_API=1 cargo test -p xtask --test tidy` writes the file anew. A line that goes or changes breaks programs; one that comes
//! does not. It is read from the sources, so it says what is written there: types of results are not looked through, and what a macro
//! makes is the macro's call.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use quote::ToTokens;
use syn::{Attribute, Fields, Generics, ImplItem, Item, TraitItem, Type, UseTree, Visibility};

use super::{root, sources::files};

const SNAPSHOT: &str = "halite/api.txt";
/// Folders of crates whose items the crate passes on as its own. What it passes on of others changes with every release, as it says.
const PARTS: [(&str, &str); 3] =
    [("halite_abi", "abi/src/"), ("halite_text", "text/src/"), ("halite_compiler", "compiler/src/")];
/// The root and the public module that has a file of its own, and what this one has beside what it passes on.
const ROOTS: [&str; 2] = ["halite/src/lib.rs", "halite/src/compile/mod.rs"];
const FUNCTIONS: [&str; 1] = ["capabilities"];

/// Tokens as people write them, nearly.
fn plain(tokens: impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("[ ", "["),
        (" ]", "]"),
        ("& ", "&"),
        (" ;", ";"),
        (" :", ":"),
        (" ?", "?"),
        ("# [", "#["),
        (",)", ")"),
        // Nobody but the function itself feels that.
        ("(mut ", "("),
    ] {
        text = text.replace(from, to);
    }
    text.trim().to_owned()
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether something is only there in tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = plain(attribute);
        attribute.path().is_ident("cfg") && (text.contains("(test") || text.contains("doctest"))
    })
}

/// The attributes that programs feel.
fn marks(attributes: &[Attribute]) -> String {
    let felt = |a: &&Attribute| a.path().is_ident("derive") || a.path().is_ident("non_exhaustive");
    attributes.iter().filter(felt).map(|attribute| format!("{} ", plain(attribute))).collect()
}

/// Names that a tree of `use` brings, with the crate or module that they come from.
fn brought(tree: &UseTree, from: Option<String>, names: &mut Vec<(String, String)>) {
    match tree {
        UseTree::Path(path) => {
            brought(&path.tree, Some(from.unwrap_or_else(|| path.ident.to_string())), names);
        }
        UseTree::Name(name) => names.extend(from.map(|from| (from, name.ident.to_string()))),
        UseTree::Rename(name) => names.extend(from.map(|from| (from, name.rename.to_string()))),
        UseTree::Group(group) => group.items.iter().for_each(|tree| brought(tree, from.clone(), names)),
        UseTree::Glob(_) => names.extend(from.map(|from| (from, "*".to_owned()))),
    }
}

/// What is gathered.
struct Gathered<'a> {
    /// Names of items that programs see.
    names: &'a BTreeSet<String>,
    lines: BTreeSet<String>,
}

impl Gathered<'_> {
    fn sees(&self, visibility: &Visibility, name: &impl ToString) -> bool {
        is_public(visibility) && self.names.contains(&name.to_string())
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Struct(it) if self.sees(&it.vis, &it.ident) => {
                let (marks, generics) = (marks(&it.attrs), head(&it.generics));
                let line = format!("{marks}struct {}{generics} {}", it.ident, fields(&it.fields, false));
                self.lines.insert(line);
            }
            Item::Enum(it) if self.sees(&it.vis, &it.ident) => {
                self.lines.insert(format!("{}enum {}{}", marks(&it.attrs), it.ident, head(&it.generics)));
                for variant in &it.variants {
                    let line = format!("{}::{} {}", it.ident, variant.ident, fields(&variant.fields, true));
                    self.lines.insert(line.trim().to_owned());
                }
            }
            Item::Trait(it) if self.sees(&it.vis, &it.ident) => {
                let (generics, bounds) = (head(&it.generics), plain(&it.supertraits));
                self.lines.insert(format!("trait {}{generics}: {bounds}", it.ident));
                for inner in &it.items {
                    let text = match inner {
                        TraitItem::Fn(inner) => plain(&inner.sig),
                        TraitItem::Const(inner) => format!("const {}: {}", inner.ident, plain(&inner.ty)),
                        TraitItem::Type(inner) => format!("type {}", inner.ident),
                        _ => continue,
                    };
                    self.lines.insert(format!("{}::{text}", it.ident));
                }
            }
            Item::Impl(it) => self.implementation(it),
            Item::Fn(it) if self.sees(&it.vis, &it.sig.ident) => drop(self.lines.insert(plain(&it.sig))),
            Item::Type(it) if self.sees(&it.vis, &it.ident) => {
                self.lines.insert(format!("type {}{} = {}", it.ident, head(&it.generics), plain(&it.ty)));
            }
            Item::Const(it) if self.sees(&it.vis, &it.ident) => {
                self.lines.insert(format!("const {}: {}", it.ident, plain(&it.ty)));
            }
            Item::Macro(it) if it.ident.is_none() => drop(self.lines.insert(plain(&it.mac))),
            _ => {}
        }
    }

    fn implementation(&mut self, it: &syn::ItemImpl) {
        let Type::Path(path) = &*it.self_ty else { return };
        let Some(name) = path.path.segments.last().map(|segment| segment.ident.to_string()) else { return };
        let of = it.trait_.as_ref().map(|of| plain(&of.0));
        let passed = |text: &str| self.names.iter().any(|name| text.contains(name.as_str()));
        // Of others, what makes them of ours: `impl From<Tensor> for Vec<u8>`.
        if !self.names.contains(&name) && !of.as_deref().is_some_and(passed) {
            return;
        }
        if let Some(of) = of {
            self.lines.insert(format!("impl{} {of} for {}", head(&it.generics), plain(&it.self_ty)));
            return;
        }
        for inner in &it.items {
            let text = match inner {
                ImplItem::Fn(inner) if is_public(&inner.vis) && !is_test(&inner.attrs) => plain(&inner.sig),
                ImplItem::Const(inner) if is_public(&inner.vis) => {
                    format!("const {}: {}", inner.ident, plain(&inner.ty))
                }
                _ => continue,
            };
            self.lines.insert(format!("{}::{text}", plain(&it.self_ty)));
        }
    }
}

/// Parameters of types, with their bounds.
fn head(generics: &Generics) -> String {
    format!("{}{}", plain(generics), generics.where_clause.as_ref().map(plain).unwrap_or_default())
}

/// Fields that programs see; `..` where there are others.
fn fields(fields: &Fields, all: bool) -> String {
    let shown = fields.iter().filter(|field| all || is_public(&field.vis)).map(|field| {
        let name = field.ident.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        format!("{name}{}", plain(&field.ty))
    });
    let mut shown: Vec<String> = shown.collect();
    if shown.len() < fields.len() {
        shown.push("..".to_owned());
    }
    if shown.is_empty() { String::new() } else { format!("{{ {} }}", shown.join(", ")) }
}

/// Names of other crates in signatures, which programs have from the standard library, from ndarray, or from the modules `hal`, `host`, `vulkan` and
/// `compile::outline`.
const OF_OTHERS: [&str; 43] = [
    "Arc",
    "ArgumentKind",
    "ArrayBase",
    "ArrayD",
    "BTreeMap",
    "Box",
    "CallersDevice",
    "CallersInstance",
    "ControlFlow",
    "Copy",
    "Data",
    "DataOutline",
    "Debug",
    "Default",
    "DriverRegistry",
    "Duration",
    "Elem",
    "Error",
    "ExactSizeIterator",
    "Fn",
    "FnMut",
    "From",
    "FunctionOutline",
    "HashMap",
    "Instant",
    "Into",
    "IntoIterator",
    "Item",
    "Iterator",
    "Option",
    "Path",
    "PathBuf",
    "Read",
    "Result",
    "Self",
    "Send",
    "Serialize",
    "Status",
    "String",
    "Sync",
    "SystemTime",
    "Vec",
    "Write",
];

/// Types in lines of the snapshot that a program cannot name: what it gets it could not keep or hand on.
fn unnameable<'a>(lines: &'a BTreeSet<String>, names: &BTreeSet<String>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    // Implementations and what is passed on tell of other crates, too.
    let other = ["impl", "mod ", "pub use", "#[cfg", "host: ", "vulkan: "];
    for line in lines.iter().filter(|line| !other.iter().any(|start| line.starts_with(start))) {
        // Derived traits stand in front of what they are derived for, and what an item belongs to in front of it.
        let line = line.rsplit_once(")] ").map_or(line.as_str(), |(_, item)| item);
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut at = 0;
        for name in line.split(|c: char| !is_part(c)) {
            let before = &line[..at];
            at += name.len() + line[at + name.len()..].chars().next().map_or(0, char::len_utf8);
            let is_type = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
            if is_type && !before.ends_with("::") && !names.contains(name) && !OF_OTHERS.contains(&name) {
                found.insert(name);
            }
        }
    }
    found
}

/// Sources with their names below the root.
type Sources = [(String, String)];

fn parsed((name, text): &(String, String)) -> Vec<Item> {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}")).items
}

/// The items of a folder's files but for tests.
fn items(sources: &Sources, folder: &str) -> Vec<Item> {
    let files = sources.iter().filter(|(name, _)| name.starts_with(folder) && !name.ends_with("/tests.rs"));
    files.flat_map(parsed).filter(|item| !is_test(attributes(item))).collect()
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// What the crate passes on, by the module or the crate that it has it from.
fn passed_on(own: &[Item]) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses = Vec::new();
    for item in own {
        if let Item::Use(it) = item
            && is_public(&it.vis)
        {
            brought(&it.tree, None, &mut uses);
        }
    }
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, name) in uses {
        seen.entry(from).or_default().insert(name);
    }
    seen
}

/// What the root and the public modules say of themselves.
fn modules(sources: &Sources) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let roots = sources.iter().filter(|(name, _)| ROOTS.contains(&name.as_str()));
    for item in roots.flat_map(parsed) {
        match item {
            Item::Use(mut it) if is_public(&it.vis) => {
                it.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
                lines.insert(plain(&it));
            }
            Item::Mod(it) if is_public(&it.vis) => {
                lines.insert(format!("mod {}", it.ident));
                let inner = it.content.into_iter().flat_map(|(_, items)| items);
                let inner = inner.filter(|item| matches!(item, Item::Use(_)));
                lines.extend(inner.map(|item| format!("{}: {}", it.ident, plain(item))));
            }
            _ => {}
        }
    }
    lines
}

/// The lines of the snapshot, and the names that programs see.
fn api(sources: &Sources) -> (BTreeSet<String>, BTreeSet<String>) {
    let own = items(sources, "halite/src/");
    let seen = passed_on(&own);
    let all: BTreeSet<String> =
        seen.values().flatten().cloned().chain(FUNCTIONS.map(str::to_owned)).collect();
    let mut gathered = Gathered { names: &all, lines: modules(sources) };
    own.iter().for_each(|item| gathered.item(item));
    let mut lines = gathered.lines;
    for (name, folder) in PARTS {
        let names = seen.get(name).cloned().unwrap_or_default();
        let mut gathered = Gathered { names: &names, lines };
        let items = items(sources, folder);
        items.iter().filter(|item| !matches!(item, Item::Macro(_))).for_each(|item| gathered.item(item));
        lines = gathered.lines;
    }
    (lines, all)
}

#[test]
fn programs_can_name_every_type_of_a_signature() {
    let Some(sources) = files(&["rs"]) else { return };
    let (lines, names) = api(&sources);
    let found = unnameable(&lines, &names);
    assert!(
        found.is_empty(),
        "the crate halite has signatures with types that it does not pass on: {found:?}"
    );
    let line = |text: &str| BTreeSet::from([text.to_owned()]);
    assert_eq!(
        unnameable(&line("#[derive(Debug)] struct Report { constants: Vec<Hidden> }"), &names),
        BTreeSet::from(["Hidden"])
    );
    assert!(unnameable(&line("Device::fn hal(&self) -> &Arc<dyn hal::Device>"), &names).is_empty());
}

#[test]
fn what_programs_see_of_the_library_is_what_was_agreed() {
    let Some(sources) = files(&["rs"]) else { return };
    let (now, _) = api(&sources);
    assert!(now.len() > 300 && now.iter().any(|line| line.starts_with("Session::fn run(")), "{now:#?}");
    let path = root().join(SNAPSHOT);
    if std::env::var_os("HALITE_WRITE_API").is_some() {
        let text: String = now.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).expect("the snapshot can be written");
    }
    let agreed = fs::read_to_string(&path).expect("the snapshot is there");
    let agreed: BTreeSet<String> = agreed.lines().map(str::to_owned).collect();
    let (gone, new): (Vec<_>, Vec<_>) =
        (agreed.difference(&now).collect(), now.difference(&agreed).collect());
    assert!(
        gone.is_empty() && new.is_empty(),
        "the interface of the crate halite changed: gone (breaks programs) {gone:#?}, new {new:#?}; if that is meant, write \
         {SNAPSHOT} anew with HALITE_WRITE_API=1, and tell it in CHANGELOG.md"
    );
}
