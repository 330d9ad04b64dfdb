//! Generates the reference of the settings from the program itself.

use std::{fmt::Write as _, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::pages::{NOTICE, quoted, row};

/// The output of `jurat config show --json`.
#[derive(Debug, Deserialize)]
struct ConfigListing {
    items: Vec<ConfigItem>,
    provider_settings: Vec<ProviderItem>,
    profile_settings: Vec<ProfileItem>,
}

/// A key of the section of a consensus profile.
#[derive(Debug, Deserialize)]
struct ProfileItem {
    name: String,
    default: String,
    about: String,
}

/// A key of the section of a provider.
#[derive(Debug, Deserialize)]
struct ProviderItem {
    section: String,
    name: String,
    default: String,
    expects: String,
    about: String,
}

#[derive(Debug, Deserialize)]
struct ConfigItem {
    name: String,
    variable: String,
    flag: Option<String>,
    default: Value,
    expects: String,
    about: String,
}

pub(super) fn page(program: &Path) -> Result<String> {
    let shown: ConfigListing = serde_json::from_str(&show(program)?)
        .context("`jurat config show --json` did not print settings")?;
    Ok(written(&shown))
}

fn show(program: &Path) -> Result<String> {
    let output = Command::new(program)
        // A missing folder has no config file that could change a value.
        .args(["--state-dir", "none", "config", "show", "--json"])
        .env_clear()
        .output()
        .with_context(|| {
            format!("cannot run {}; `cargo build` or the tests make it", program.display())
        })?;
    if !output.status.success() {
        bail!("`config show` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("the settings are not UTF-8")
}

fn written(shown: &ConfigListing) -> String {
    let mut text = format!(
        "{NOTICE}# Settings\n\n\
         Each setting has a name in the file and a variable; some have a flag.\n\
         [Configuration](../guide/configuration.md) says which value counts.\n\n\
         | setting | variable | flag | default | must be |\n|---|---|---|---|---|\n"
    );
    for item in &shown.items {
        let default = match (&item.default, item.default.as_str()) {
            (Value::Null, _) => String::new(),
            (_, Some(text)) => quoted(text),
            (other, None) => quoted(&other.to_string()),
        };
        let flag = item.flag.as_deref().map(quoted).unwrap_or_default();
        row(
            &mut text,
            &[&quoted(&item.name), &quoted(&item.variable), &flag, &default, &item.expects],
        );
    }
    text.push_str("\n## What they are for\n\n");
    for item in &shown.items {
        let _ = writeln!(text, "- {}: {}", quoted(&item.name), item.about);
    }
    text.push_str(&providers(&shown.provider_settings));
    text.push_str(&profiles(&shown.profile_settings));
    text
}

fn profiles(items: &[ProfileItem]) -> String {
    let mut text = String::from(
        "\n## Consensus profiles\n\n\
         Each profile has a section of its own in the file, and is the model `jurat/NAME` of [chat clients](../guide/openai.md).\n\
         `fast`, `safe` and `oracle` are built in.\n\n\
         `[profiles.NAME]`\n\n| key | without it | for |\n|---|---|---|\n",
    );
    for item in items {
        row(&mut text, &[&quoted(&item.name), &item.default, &item.about]);
    }
    text
}

fn providers(items: &[ProviderItem]) -> String {
    let mut text = String::from(
        "\n## Providers of judges\n\n\
         Each provider has a section of its own in the file; neither variables nor flags set it.\n",
    );
    let mut section = "";
    for item in items {
        if item.section != section {
            section = &item.section;
            let _ = write!(
                text,
                "\n`[{section}]`\n\n| key | must be | without it | for |\n|---|---|---|---|\n"
            );
        }
        row(&mut text, &[&quoted(&item.name), &item.expects, &item.default, &item.about]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_a_row_and_a_sentence() {
        let text = r#"{"file": null, "items": [
            {"name": "a.b", "variable": "JURAT_A", "flag": null, "default": 7, "expects": "`x` | y", "about": "It is a."},
            {"name": "a.c", "variable": "JURAT_C", "flag": "--c", "default": null, "expects": "a text", "about": "It is c."}],
            "provider_settings": [
            {"section": "providers.NAME", "name": "kind", "default": "by name", "expects": "a word", "about": "It is d."}],
            "profile_settings": [{"name": "replicas", "default": "1", "about": "It is e."}]}"#;
        let page = written(&serde_json::from_str(text).unwrap());
        for line in [
            "| `a.b` | `JURAT_A` |  | `7` | `x` \\| y |",
            "| `a.c` | `JURAT_C` | `--c` |  | a text |",
            "- `a.b`: It is a.",
            "`[providers.NAME]`",
            "| `kind` | a word | by name | It is d. |",
            "| `replicas` | 1 | It is e. |",
        ] {
            assert!(page.lines().any(|it| it == line), "{line} is not in\n{page}");
        }
    }
}
