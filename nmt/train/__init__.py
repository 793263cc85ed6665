"""From batches to weights: loss, schedule, optimizer, the loop, validation, the journal."""
