import { leaveOutSecret } from '../../../domain/account/audit-log';
import { MAIN_BALANCE } from '../../../domain/account/balance-account';
import { PLATFORM } from '../../../ledger/entries';
import { ENTRY_LINES } from '../../../ledger/entry-lines';
import { PLATFORM_ACCOUNTS, type PlatformKind } from '../../../ledger/ledger-accounts';
import type { WriteDeps } from '../../deps';
import { buildEntryDetails } from './correction';
import { type Note, type PostedBalance, postOnce } from './fund';

export const PLATFORM_KINDS = Object.keys(PLATFORM_ACCOUNTS) as PlatformKind[];

export interface PlatformMovement {
  livemode: boolean;
  connector: string;
  kind: PlatformKind;
  currency: string;
  /** Minor units as the statement has them: above 0 comes in. */
  amount: number;
  bank_reference: string;
}

/**
 * Posts what a bank moved of the service's own money. A repeat with the same id posts nothing.
 * @see docs/ledger.md#the-services-own-money
 * @throws ServiceError `operation_id_used`, `bank_reference_used`, `approval_decided`
 */
export async function postPlatform(
  deps: WriteDeps,
  { livemode, connector, kind, currency, amount, bank_reference }: PlatformMovement,
  note: Note,
  id: string,
): Promise<PostedBalance> {
  const owner = { account_id: PLATFORM, livemode, currency };
  const lines = ENTRY_LINES.platform_posted(connector, kind, amount);
  const details = await buildEntryDetails(deps, owner, note);
  const posted = { kind: 'platform_posted', resource_id: id, ...owner, bank_reference } as const;
  const { approval_id, count: writeMore } = note;
  const reference = leaveOutSecret(bank_reference);
  const money = { connector, kind, currency, amount, bank_reference: reference };
  const after = { ...money, ...details.note, approval_id };
  const change = { act: 'platform.posted', after } as const;
  // Its book has no balance account.
  const options = { balance_account: MAIN_BALANCE, approval_id, writeMore };
  return await postOnce(deps, { ...posted, ...details, lines }, change, options);
}
