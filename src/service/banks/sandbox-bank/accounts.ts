import { sandboxIban } from '../../../domain/sandbox/movement';
import { SANDBOX_CONNECTOR } from '../../../routing';
import type { WriteDeps } from '../../deps';
import { addBankAccount, listBankAccounts } from '../bank-accounts';

/** Currencies of a new account's test funds. */
export const SANDBOX_CURRENCIES: readonly string[] = ['EUR', 'GBP', 'USD'];

export async function registerSandboxAccounts(
  deps: WriteDeps,
  currencies: Iterable<string>,
): Promise<void> {
  const account = { connector: SANDBOX_CONNECTOR, livemode: false };
  const registered = new Set((await listBankAccounts(deps, account)).map(({ iban }) => iban));
  for (const currency of new Set(currencies)) {
    const iban = sandboxIban(currency);
    if (registered.has(iban)) continue;
    await addBankAccount({ ...deps, liveConnectors: '' }, { ...account, iban, currency });
  }
}
