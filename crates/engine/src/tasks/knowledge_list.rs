//! Lists the knowledge of an account.

use jurat_core::{
    account::caller::{Caller, Scope},
    task::{
        TaskKey,
        knowledge::{KnowledgeFilter, KnowledgeRecord, KnowledgeScope},
    },
};

use crate::{
    Engine, EngineError,
    access::{behalf_of, require_scope},
};

impl Engine {
    /// The knowledge about a type of tasks or about one task, the newest decision first.
    pub async fn knowledge_list(
        &self,
        caller: &Caller,
        filter: &KnowledgeFilter,
    ) -> Result<Vec<KnowledgeRecord>, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let (knowledge, account) = (self.inner.store.knowledge(), caller.account());
        let found = knowledge.export(&behalf_of(caller), account, filter).await?;
        if let (true, KnowledgeScope::Task(id)) = (found.is_empty(), &filter.of) {
            // Nothing is remembered of the task, or there is none.
            self.task_of(&TaskKey { account: account.clone(), id: id.clone() }).await?;
        }
        Ok(found)
    }
}
