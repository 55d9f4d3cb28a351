//! What the package files, for pkg-config and CMake, have to say of a built library.

use anyhow::{Result, bail};

use super::{build::Built, layout::Layout};

/// What stands for `@NAME@` in the package files.
pub fn values(layout: &Layout, built: &Built) -> Vec<(&'static str, String)> {
    let mut numbers = built.version.split('.');
    let (first, second) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
    let compatible = if first == "0" { format!("0[.]{second}[.]") } else { format!("{first}[.]") };
    let libraries: Vec<&str> =
        built.system_libraries.split_whitespace().map(|word| word.trim_start_matches("-l")).collect();
    vec![
        ("VERSION", built.version.clone()),
        ("COMPATIBLE", compatible),
        ("POINTER_BYTES", built.pointer_bytes.map(|bytes| bytes.to_string()).unwrap_or_default()),
        ("SHARED_FILE", layout.shared.clone()),
        ("STATIC_FILE", layout.archive.clone()),
        ("IMPORT_FILE", layout.import.clone().unwrap_or_default()),
        ("SONAME", layout.soname.clone()),
        ("LINK_NAME", layout.link_name.to_owned()),
        ("SYSTEM_LIBRARIES", built.system_libraries.clone()),
        ("SYSTEM_LIBRARIES_CMAKE", libraries.join(";")),
    ]
}

/// A template with its values. All `@NAME@` have to be known.
pub fn fill(template: &str, values: &[(&str, String)]) -> Result<String> {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("@{name}@"), value);
    }
    let unknown = text
        .split('@')
        .skip(1)
        .step_by(2)
        .find(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    match unknown {
        Some(name) => bail!("nothing stands for @{name}@"),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_whole() {
        let values = [("A", "1".to_owned())];
        assert_eq!(fill("a@A@b @A@", &values).unwrap(), "a1b 1");
        assert!(fill("a@B@", &values).unwrap_err().to_string().contains("@B@"));
    }
}
