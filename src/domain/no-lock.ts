/** Type of the failure that makes a debit retry later, without holding a worker slot. */
export const NO_LOCK = 'no_lock';
