import { parseBookCurrency } from '../../domain/crypto/assets';
import { ServiceError } from '../../domain/errors';
import { formatMoney } from '../../domain/money';

/** Default limit in minor units. */
export const APPROVAL_LIMIT = 100_000;

interface ApprovalRequest {
  livemode: boolean;
  currency: string;
  /** Minor units, or the smallest units of an asset; the sign is ignored. */
  amount: number | bigint;
  operator: string | undefined;
  approved_by: string | undefined;
}

/**
 * Enforces the two-person rule. Both names are unverified; the audit log records the system user
 * who typed them. A correction of an asset always needs two persons.
 * @param limit minor units
 * @throws ServiceError `approval_required`
 */
export function assertApproved(
  limit: number,
  { livemode, currency, amount, operator, approved_by }: ApprovalRequest,
): void {
  if (approved_by !== undefined && approved_by.toLowerCase() === operator?.toLowerCase()) {
    throw new ServiceError('approval_required', 'The second operator must be another person.');
  }
  if (approved_by !== undefined && operator === undefined) {
    const message = 'An approval needs the first operator, too: add --operator.';
    throw new ServiceError('approval_required', message);
  }
  if (!livemode || approved_by !== undefined) return;
  const isAsset = parseBookCurrency(currency) !== undefined;
  if (!isAsset && amount <= limit && -amount <= limit) return;
  const subject = isAsset
    ? 'a correction of an asset'
    : `more than ${formatMoney(limit, currency)}`;
  throw new ServiceError(
    'approval_required',
    `On live, ${subject} needs a second operator: add --approved-by. Nothing was posted.`,
  );
}
