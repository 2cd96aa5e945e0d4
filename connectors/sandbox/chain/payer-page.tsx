import type { ComponentChildren } from 'preact';
import {
  assetRules,
  formatDecimalUnits,
  formatUnits,
  parseUnits,
} from '../../../src/domain/crypto/assets';
import { Detail } from '../../../src/pages/layout';
import { Field } from '../fields';
import type { Course } from './plan';
import type { PayerWallet } from './wallets';

export const CHOICES = [
  { value: 'confirms', label: 'It is confirmed' },
  { value: 'listed', label: 'Its source fails the screening' },
  { value: 'reorged_early', label: 'The chain undoes it before it counts, then takes it again' },
  { value: 'reorged_late', label: 'The chain undoes it after it has counted' },
  { value: 'never_confirms', label: 'It is never confirmed' },
] as const satisfies readonly { value: Course | 'listed'; label: string }[];

export interface PayerPage {
  wallet: PayerWallet;
  path: string;
  /** Secret of the form, so that a repeat pays once. */
  nonce: string;
  sent: bigint;
  fault?: string | undefined;
}

export function payerPage({ wallet, path, nonce, sent, fault }: PayerPage): ComponentChildren {
  const { instruction, address } = wallet;
  const { asset, network, amount_due } = instruction;
  const decimals = assetRules(asset, network)?.decimals ?? 0;
  const due = parseUnits(amount_due);
  const suggestion = due > sent ? due - sent : due;
  return (
    <>
      <div class="stack">
        <h1>Play the payer</h1>
        <p class="muted">This money does not exist. The payment’s own page shows the result.</p>
      </div>
      <dl>
        <Detail name="Due">{formatUnits(amount_due, instruction)}</Detail>
        <Detail name="To">{address}</Detail>
        {sent > 0n && <Detail name="Sent so far">{formatUnits(sent, instruction)}</Detail>}
      </dl>
      <form class="stack" method="post" action={`${path}/send`}>
        <input type="hidden" name="nonce" value={nonce} />
        <Field
          name="amount"
          label={`Amount in ${asset}`}
          hint="Less, more or twice: see what happens."
          fault={fault}
          value={formatDecimalUnits(suggestion, decimals)}
          inputMode="decimal"
          autoComplete="off"
        />
        <div class="field">
          <label for="course">What becomes of it</label>
          <select id="course" name="course">
            {CHOICES.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </div>
        <button type="submit">{sent > 0n ? 'Send again' : 'Send'}</button>
      </form>
    </>
  );
}
