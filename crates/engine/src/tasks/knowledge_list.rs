//! Lists the knowledge of an account.

use jurat_core::{
    account::caller::{Caller, Scope},
    task::{
        TaskKey,
        knowledge::{KnowledgePosition, KnowledgeRecord, KnowledgeScope},
    },
};
use jurat_store::KnowledgePageQuery;

use crate::{
    Engine, EngineError,
    access::{behalf_of, require_scope},
};

/// Selects decisions.
#[derive(Debug, Clone)]
pub struct KnowledgeQuery {
    pub of: KnowledgeScope,
    /// Starts after this decision, towards older ones.
    pub before: Option<KnowledgePosition>,
    pub limit: u32,
}

impl Engine {
    /// The knowledge about a type of tasks or about one task, the newest decision first.
    pub async fn knowledge_list(
        &self,
        caller: &Caller,
        query: KnowledgeQuery,
    ) -> Result<Vec<KnowledgeRecord>, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let KnowledgeQuery { of, before, limit } = query;
        let page = KnowledgePageQuery { account: caller.account().clone(), of, before, limit };
        let found = self.inner.store.knowledge().export(&behalf_of(caller), &page).await?;
        if let (true, KnowledgeScope::Task(id)) = (found.is_empty(), page.of) {
            // Either nothing is remembered of the task, or there is none.
            self.task_of(&TaskKey { account: page.account, id }).await?;
        }
        Ok(found)
    }
}
