//! The bill of materials: which crates are in what is shipped, in the form of CycloneDX 1.5.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Parts;
use crate::shell::{cargo, output, repo};

/// Packages that are shipped: the program, libhalite, the Python module, the native half of Java's interface.
const SHIPPED: [&str; 4] = ["halite-tools", "halite-c", "halite-python", "halite-java"];

/// The list as text, in an order that does not change.
pub fn of_materials(parts: &Parts) -> Result<String> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", &target];
    let metadata: Value = serde_json::from_str(&output(&mut cargo(&args))?)?;
    let sums = checksums(&fs::read_to_string(repo("Cargo.lock"))?);
    let list = list(&metadata, &sums, &parts.version)?;
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

/// Digests of crates by name and version, as `Cargo.lock` has them.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |part: &str, name: &str| {
        let line = part.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
        Some(line?.trim_end_matches('"').to_owned())
    };
    let parts = lock.split("[[package]]");
    parts.filter_map(|p| Some(((field(p, "name")?, field(p, "version")?), field(p, "checksum")?))).collect()
}

/// The ids of everything that the shipped packages are linked with, and what each needs.
fn linked(metadata: &Value) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata has no graph")?;
    let by_id: BTreeMap<&str, &Value> = nodes.iter().filter_map(|n| Some((n["id"].as_str()?, n))).collect();
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let shipped = packages.iter().filter(|p| SHIPPED.iter().any(|name| p["name"] == *name));
    let mut open: Vec<&str> = shipped.filter_map(|p| p["id"].as_str()).collect();
    let mut found = BTreeMap::new();
    while let Some(id) = open.pop() {
        if found.contains_key(id) {
            continue;
        }
        let node = by_id.get(id).with_context(|| format!("no node for {id}"))?;
        let needs: BTreeSet<String> = node["deps"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|d| is_normal(d))
            .filter_map(id_of)
            .collect();
        open.extend(
            node["deps"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|d| is_normal(d))
                .filter_map(|d| d["pkg"].as_str()),
        );
        found.insert(id.to_owned(), needs);
    }
    Ok(found)
}

/// Whether what depends is linked with it: not only its tests, nor its build.
fn is_normal(dependency: &Value) -> bool {
    dependency["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn id_of(dependency: &Value) -> Option<String> {
    Some(dependency["pkg"].as_str()?.to_owned())
}

fn list(metadata: &Value, sums: &BTreeMap<(String, String), String>, version: &str) -> Result<Value> {
    let linked = linked(metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let reference =
        |package: &Value| format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"));
    let names: BTreeMap<&str, String> =
        packages.iter().filter_map(|p| Some((p["id"].as_str()?, reference(p)))).collect();
    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    for package in packages.iter().filter(|p| p["id"].as_str().is_some_and(|id| linked.contains_key(id))) {
        let name = reference(package);
        components.insert(name.clone(), component(package, &name, sums));
        let needs = package["id"].as_str().and_then(|id| linked.get(id)).into_iter().flatten();
        let mut needs: Vec<&String> = needs.filter_map(|id| names.get(id.as_str())).collect();
        needs.sort();
        dependencies.insert(name.clone(), json!({ "ref": name, "dependsOn": needs }));
    }
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "bom-ref": "halite", "name": "halite", "version": version } },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    }))
}

fn component(package: &Value, reference: &str, sums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let mut component = json!({ "type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference });
    let own = component.as_object_mut().expect("it was made as an object");
    if let Some(license) = package["license"].as_str() {
        // Old manifests have a slash where SPDX says OR.
        own.insert("licenses".to_owned(), json!([{ "expression": license.replace('/', " OR ") }]));
    }
    if let Some(sum) = sums.get(&(name.to_owned(), version.to_owned())) {
        own.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": sum }]));
    }
    component
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_linked_is_listed() {
        let kinds = |kind: Value| json!([{ "kind": kind }]);
        let package = |id: &str, name: &str| json!({ "id": id, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0" });
        let dependency = |id: &str, kind: Value| json!({ "pkg": id, "dep_kinds": kinds(kind) });
        let metadata = json!({
            "packages": [package("a", "halite-tools"), package("b", "bytes"), package("c", "proptest"), package("d", "xtask")],
            "resolve": { "nodes": [
                { "id": "a", "deps": [dependency("b", Value::Null), dependency("c", json!("dev"))] },
                { "id": "b", "deps": [] }, { "id": "c", "deps": [] }, { "id": "d", "deps": [dependency("b", Value::Null)] },
            ] },
        });
        let lock =
            "[[package]]\nname = \"bytes\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"abc\"\n";
        let list = list(&metadata, &checksums(lock), "0.1.0").unwrap();
        let names: Vec<&str> =
            list["components"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["bytes", "halite-tools"]);
        assert_eq!(list["components"][0]["hashes"][0]["content"], "abc");
        assert_eq!(list["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(list["dependencies"][1]["dependsOn"], json!(["pkg:cargo/bytes@1.0.0"]));
    }
}
