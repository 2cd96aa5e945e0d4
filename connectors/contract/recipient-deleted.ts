import { RECIPIENT_DELETED } from '../../src/domain/payout/rules';

/**
 * Error of deleted details. Answer `refused` with this refusal, which returns the money to the
 * merchant. @see docs/connectors.md#who-is-paid
 */
export class RecipientDeleted extends Error {
  override readonly name: string = 'RecipientDeleted';
  readonly refusal: { code: string; message: string } = {
    code: RECIPIENT_DELETED.code,
    message: 'The recipient was deleted before the payout was sent.',
  };

  constructor() {
    super('The recipient was deleted.');
  }
}
