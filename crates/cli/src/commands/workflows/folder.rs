//! A workflow in a folder: its body, and the files beside it.

use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use jurat_core::workflow::file::{FILE_BYTES, MOST_FILES};
use jurat_wire::api::workflows::FileDraft;

use crate::{commands::shared::input, failure::CliFailure};

/// Possible file names of the body.
const BODIES: [&str; 2] = ["WORKFLOW.md", "SKILL.md"];
/// Files that list the files to ignore.
const IGNORE_FILES: [&str; 2] = [".juratignore", ".goodeyeignore"];
/// Files that are always ignored.
const IGNORED: [&str; 16] = [
    ".git/",
    ".hg/",
    "node_modules/",
    "__pycache__/",
    "*.pyc",
    "*.pyo",
    ".venv/",
    "venv/",
    ".DS_Store",
    "dist/",
    "build/",
    "target/",
    "*.egg-info/",
    ".mypy_cache/",
    ".pytest_cache/",
    "*.log",
];
const DEEPEST: usize = 16;

/// A workflow that was read from a folder.
pub(super) struct WorkflowFolder {
    pub(super) body: String,
    pub(super) files: Vec<FileDraft>,
}

pub(super) fn read(folder: &Path) -> anyhow::Result<WorkflowFolder> {
    let body = BODIES.iter().map(|name| folder.join(name)).find(|file| file.is_file());
    let Some(body) = body else {
        let text = format!("`{}` has no WORKFLOW.md and no SKILL.md", folder.display());
        return Err(CliFailure::usage(text));
    };
    let ignored = matcher(folder)?;
    let mut paths = Vec::new();
    collect_files(folder, &ignored, SubFolder { path: folder, depth: 0 }, &mut paths)?;
    paths.retain(|path| *path != body);
    paths.sort();
    if paths.len() > MOST_FILES {
        let text = format!(
            "`{}` has {} attached files, and at most {MOST_FILES} are allowed; exclude some in .juratignore",
            folder.display(),
            paths.len()
        );
        return Err(CliFailure::usage(text));
    }
    let files = paths.iter().map(|path| file(folder, path)).collect::<anyhow::Result<_>>()?;
    Ok(WorkflowFolder { body: text(&body)?, files })
}

fn matcher(folder: &Path) -> anyhow::Result<Gitignore> {
    let mut builder = GitignoreBuilder::new(folder);
    for line in IGNORED {
        builder.add_line(None, line)?;
    }
    for name in IGNORE_FILES {
        let file = folder.join(name);
        if file.is_file()
            && let Some(error) = builder.add(&file)
        {
            let text = format!("`{}` cannot be read: {error}", file.display());
            return Err(CliFailure::usage(text));
        }
    }
    Ok(builder.build()?)
}

/// A folder and its depth.
#[derive(Debug, Clone, Copy)]
struct SubFolder<'a> {
    path: &'a Path,
    depth: usize,
}

/// Collects the files of a folder. Skips symbolic links, which may lead out of the folder.
fn collect_files(
    root: &Path,
    ignored: &Gitignore,
    folder: SubFolder<'_>,
    found: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    let SubFolder { path, depth } = folder;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_own = IGNORE_FILES.iter().any(|name| path == root.join(name));
        if kind.is_symlink() || (!is_own && ignored.matched(&path, kind.is_dir()).is_ignore()) {
            continue;
        }
        if kind.is_dir() && depth < DEEPEST {
            let folder = SubFolder { path: &path, depth: depth + 1 };
            collect_files(root, ignored, folder, found)?;
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

fn file(root: &Path, path: &Path) -> anyhow::Result<FileDraft> {
    let inner = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = inner.iter().map(|part| part.to_string_lossy()).collect();
    let entry = entry(&parts.join("/"), path)?;
    Ok(FileDraft { executable: is_executable(path).then_some(true), ..entry })
}

/// A file to send: as text if it is text, otherwise as Base64.
pub(super) fn entry(name: &str, path: &Path) -> anyhow::Result<FileDraft> {
    let most = u64::try_from(FILE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let bytes = input::whole(&format!("`{}`", path.display()), path, most)?;
    let (content, content_base64) = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => (Some(text), None),
        Ok(text) => (None, Some(STANDARD.encode(text))),
        Err(error) => (None, Some(STANDARD.encode(error.into_bytes()))),
    };
    let path = name.to_owned();
    Ok(FileDraft { path, content, content_base64, ..FileDraft::default() })
}

/// Reads a text file.
pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    let name = format!("`{}`", path.display());
    let bytes = input::whole(&name, path, input::LARGEST)?;
    let text = String::from_utf8(bytes);
    text.map_err(|_| CliFailure::usage(format!("{name} is not UTF-8 text")))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    false
}
