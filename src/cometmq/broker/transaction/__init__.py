"""Half messages: commit, rollback, and questions to producers about those that stay open."""
