import type { ClockStop } from '../../src/domain/account/clock';

/** Activity of the sandbox bank, whose next steps follow the clock of an account. */
export interface ClockConnectorActivities {
  /**
   * Lets what is due by the account's new time happen now; safe to repeat.
   * @see docs/api.md#sandbox-clock
   */
  advanceBankClock(input: BankClockAdvance): Promise<ClockStop>;
}

export interface BankClockAdvance {
  account_id: string;
  /** Time ahead of the real one, in ms. */
  offset_ms: number;
  /** Offset before this advance, in ms. */
  from_ms: number;
}
