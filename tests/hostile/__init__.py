"""Files that are damaged, absurd or meant to harm: each is read or refused in one sentence, soon."""
