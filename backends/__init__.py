"""Language models and tokenizers from other libraries; each module imports its library on use."""
