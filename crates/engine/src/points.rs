//! Named points before and after what is written and asked. Tests let the process end at one, to
//! see that nothing is lost or done twice; elsewhere passing one does nothing.

use std::{fmt, sync::Arc};

/// What happens at a point.
pub type Passing = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The points of a process.
#[derive(Clone, Default)]
pub struct Points(Option<Passing>);

impl Points {
    pub fn new(passing: Passing) -> Self {
        Self(Some(passing))
    }

    pub(crate) fn pass(&self, name: &'static str) {
        if let Some(passing) = &self.0 {
            passing(name);
        }
    }
}

impl fmt::Debug for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.0.is_some() { "watched" } else { "unwatched" };
        f.debug_tuple("Points").field(&what).finish()
    }
}
