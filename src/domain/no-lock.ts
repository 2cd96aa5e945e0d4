/** Failure type: a debit retries later, without holding a worker slot. */
export const NO_LOCK = 'no_lock';
