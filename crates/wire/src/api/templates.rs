//! Templates in requests and replies.

mod reply;
mod request;

pub use self::{
    reply::{
        ArchivedTemplate, DeletedTemplate, DeletedVersion, DeprecatedVersion, ForkedTemplate,
        MOST_OVER_MCP, OfferedTemplate, PublishedTemplateBody, SafetyCheckBody, ScreenRunBody,
        TemplateBody, TemplateFileBody, TemplateFileEnvelope, TemplateSearchBody, TemplateSummary,
        UnarchivedTemplate, UnpublishedVersion, already_owned, body_of, deleted_version,
        deprecated, envelope, forked, listed, markdown, offered, published, screen_run_body,
        searched, shown,
    },
    request::{
        ArchiveTemplateDraft, ArchiveTemplateRequest, DeprecateVersionDraft,
        DeprecateVersionRequest, ForkTemplateDraft, ForkTemplateRequest, PublishTemplateDraft,
        PublishTemplateRequest, SearchTemplatesDraft, SearchTemplatesRequest, TemplateSearchOrder,
        TransferTemplateDraft, TransferTemplateRequest, decode_archive, decode_deprecate,
        decode_fork, decode_publish, decode_search, decode_transfer, reference,
    },
};
