import { randomUUID } from 'node:crypto';
import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import {
  assetRules,
  formatDecimalUnits,
  formatUnits,
  parseUnits,
} from '../../../src/domain/crypto/assets';
import { SECRET } from '../../../src/pages/browser';
import { Detail } from '../../../src/pages/layout';
import { seeOther } from '../../../src/pages/security';
import { Field, readForm, showMessage, showPage } from '../pages';
import { type Course, planDeposit, transactionId } from './plan';
import { parseTypedAmount } from './rates';
import type { TransactionStore } from './transactions';
import { type PayerWallet, TRANSACTIONS_MAX, type WalletStore } from './wallets';

export interface PayerRouteDeps {
  wallets: WalletStore;
  transactions: TransactionStore;
  autoplay: boolean;
  sent: () => void;
}

type RouteDeps = PayerRouteDeps & { stylesheet: string };

const NONCE = /^[0-9a-f-]{36}$/;

/** Routes on which a tester plays the payer; the token in the address authenticates. */
export function addPayerRoutes(router: Router, deps: RouteDeps): void {
  router.get('/chain/:token', async (ctx) => {
    const wallet = await find(ctx, deps);
    if (wallet !== null) await show(ctx, deps, wallet);
  });

  router.post('/chain/:token/send', async (ctx) => {
    const wallet = await find(ctx, deps);
    if (wallet === null) return;
    const form = await readForm(ctx);
    const fault = await send(deps, wallet, form);
    if (fault !== undefined) return await show(ctx, deps, wallet, fault);
    deps.sent();
    seeOther(ctx, `/chain/${wallet.token}`);
  });
}

/** Adds a transaction once for each form. @returns the fault of the form */
async function send(
  { wallets, transactions, autoplay }: PayerRouteDeps,
  { _id: resource_id, instruction }: PayerWallet,
  form: URLSearchParams,
): Promise<string | undefined> {
  const rules = assetRules(instruction.asset, instruction.network);
  const nonce = form.get('nonce') ?? '';
  const choice = CHOICES.find(({ value }) => value === form.get('course'))?.value ?? 'confirms';
  if (rules === undefined || !NONCE.test(nonce)) return 'Load the page again.';
  const { asset, network, decimals } = rules;
  const amount = parseTypedAmount(form.get('amount') ?? '', decimals);
  if (amount === undefined) return `Enter a number with up to ${decimals} digits behind the point.`;
  if (!(await wallets.reserve(resource_id, nonce))) {
    return `This address has had ${TRANSACTIONS_MAX} transactions, the most that it takes.`;
  }
  const listed = choice === 'listed';
  const course = listed ? 'confirms' : choice;
  await transactions.add({
    _id: transactionId(network, `${resource_id}:${nonce}`),
    resource: 'crypto_payment',
    resource_id,
    network,
    asset,
    amount,
    listed,
    steps: planDeposit(course, autoplay),
  });
  return undefined;
}

async function show(
  ctx: RouterContext,
  { transactions, stylesheet }: RouteDeps,
  { _id, token, instruction, address }: PayerWallet,
  fault?: string,
): Promise<void> {
  const all = await transactions.forResource(_id);
  const sent = all.reduce((sum, { amount }) => sum + parseUnits(amount), 0n);
  const { asset, network, amount_due } = instruction;
  const decimals = assetRules(asset, network)?.decimals ?? 0;
  const due = parseUnits(amount_due);
  const suggestion = due > sent ? due - sent : due;
  // A secret of the form, so that a repeat pays once.
  const nonce = randomUUID();
  const children = (
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
      <form class="stack" method="post" action={`/chain/${token}/send`}>
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
  const title = 'Play the payer · Sandbox chain';
  showPage(ctx, fault === undefined ? 200 : 422, { title, stylesheet, children });
}

const NO_ADDRESS = {
  status: 404,
  title: 'There is no such address',
  text: 'The link may be incomplete. Go back to the payment’s page.',
};

async function find(
  ctx: RouterContext,
  { wallets, stylesheet }: RouteDeps,
): Promise<PayerWallet | null> {
  const { token = '' } = ctx.params;
  const wallet = SECRET.test(token) ? await wallets.byToken(token) : null;
  if (wallet !== null) return wallet;
  showMessage(ctx, NO_ADDRESS, { stylesheet });
  return null;
}

const CHOICES = [
  { value: 'confirms', label: 'It is confirmed' },
  { value: 'listed', label: 'Its source fails the screening' },
  { value: 'reorged_early', label: 'The chain undoes it before it counts, then takes it again' },
  { value: 'reorged_late', label: 'The chain undoes it after it has counted' },
  { value: 'never_confirms', label: 'It is never confirmed' },
] as const satisfies readonly { value: Course | 'listed'; label: string }[];
