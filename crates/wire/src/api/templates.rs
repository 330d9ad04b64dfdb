//! Templates as requests and replies have them.

mod reply;
mod request;

pub(crate) use self::request::is_mine;
pub use self::{
    reply::{
        ArchivedTemplate, DeletedTemplate, DeletedVersion, DeprecatedVersion, FileBody,
        FileEnvelope, ForkedTemplate, MOST_OVER_MCP, OfferedTemplate, PublishedTemplate,
        SafetyCheckBody, ScreenRunBody, SearchReply, TemplateBody, TemplateSummary,
        UnarchivedTemplate, UnpublishedVersion, body_of, deleted_version, deprecated, envelope,
        forked, kept, listed, markdown, offered, published, run_of, searched, shown,
    },
    request::{
        ArchiveTemplateRequest, DeprecateVersionRequest, ForkTemplateRequest,
        PublishTemplateRequest, SearchOrder, SearchTemplatesRequest, TransferTemplateRequest,
        decode_archive, decode_deprecate, decode_fork, decode_publish, decode_search,
        decode_transfer, reference,
    },
};
