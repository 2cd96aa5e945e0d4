/** Type of the failure that asks a debit to come again, outside the slots of others. */
export const NO_TURN = 'no_turn';
