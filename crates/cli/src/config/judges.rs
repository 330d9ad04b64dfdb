//! The settings of judges, in the form that the engine takes.

use std::time::Duration;

use jurat_core::verifier::ModelRef;
use jurat_engine::JudgesConfig;

use crate::settings::{
    CACHE_MOST, CACHE_SECONDS, DEFAULT_MODEL, MARGIN_PERCENT, MEDIA_ALLOW, PANEL, Setting,
    Settings, listed, range,
};

/// The values have already been checked.
pub(super) fn judges(settings: &Settings) -> JudgesConfig {
    let list = |setting: &Setting| settings.text(setting).into_iter().flat_map(listed);
    let model = |text: &str| text.parse::<ModelRef>().ok();
    let providers = settings.providers().iter();
    JudgesConfig {
        providers: providers.map(|it| (it.name.clone(), it.settings.clone())).collect(),
        default_model: settings.text(&DEFAULT_MODEL).and_then(model),
        panel: list(&PANEL).filter_map(model).collect(),
        margin_percent: u32::try_from(settings.count(&MARGIN_PERCENT)).unwrap_or(u32::MAX),
        cache_for: Some(Duration::from_secs(settings.count(&CACHE_SECONDS)))
            .filter(|it| !it.is_zero()),
        cache_most: u32::try_from(settings.count(&CACHE_MOST)).unwrap_or(u32::MAX),
        media_allow: list(&MEDIA_ALLOW).filter_map(range).collect(),
    }
}
