import type { ClockStop } from '../../src/domain/account/clock';

/** Activity of the sandbox bank, whose next steps follow an account's clock. */
export interface ClockConnectorActivities {
  /**
   * Does what is due by the new time; safe to repeat.
   * @see docs/api.md#sandbox-clock
   */
  advanceBankClock(input: BankClockAdvance): Promise<ClockStop>;
}

export interface BankClockAdvance {
  account_id: string;
  /** Ms ahead of the real time. */
  offset_ms: number;
  /** Offset before this advance, in ms. */
  from_ms: number;
}
