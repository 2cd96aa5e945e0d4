import { formatUnits } from '../domain/crypto/assets';
import type { ShownCryptoPayment, ShownDeposit } from './crypto-stage';

export function Deposits({ payment }: { payment: ShownCryptoPayment }) {
  if (payment.deposits.length === 0) return null;
  return (
    <div class="stack">
      <h2>What came</h2>
      <ul class="deposits">
        {payment.deposits.map((deposit) => (
          <Deposit key={deposit.transaction_id} deposit={deposit} asset={payment} />
        ))}
      </ul>
    </div>
  );
}

function Deposit({ deposit, asset }: { deposit: ShownDeposit; asset: ShownCryptoPayment }) {
  const { transaction_id, amount, confirmations, required_confirmations: required } = deposit;
  const count = Math.min(confirmations, required);
  const labels = {
    pending: `${count} of ${required} confirmations`,
    confirmed: 'Confirmed',
    held: deposit.late ? 'Came too late: ask the shop' : 'Being checked',
    rejected: 'Not accepted: ask the shop',
  };
  return (
    <li class="lines">
      <div class="row">
        <strong>{formatUnits(amount, asset)}</strong>
        <span class={deposit.status === 'confirmed' ? 'small done' : 'small muted'}>
          {labels[deposit.status]}
        </span>
      </div>
      {deposit.status === 'pending' && (
        <meter min={0} max={required} value={count} aria-label="Confirmations" />
      )}
      <span class="value transaction muted">{transaction_id}</span>
    </li>
  );
}
