/** Texts of the workflows for operators. No other module of the docs loads workflows. */
import { VIEW as cryptoPayment } from '../../workflows/crypto-payment/state';
import { VIEW as cryptoSettlement } from '../../workflows/crypto-settlement/state';
import { VIEW as payment } from '../../workflows/payment/state';
import { VIEW as payout } from '../../workflows/payout/state';
import { VIEW as refund } from '../../workflows/refund/state';

type Kind = 'payment' | 'refund' | 'payout' | 'crypto-payment' | 'crypto-settlement';

/** Remedy of each attention reason, as the page of a resource shows it. */
export const REMEDIES: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  payment: payment.remedies,
  refund: refund.remedies,
  payout: payout.remedies,
  'crypto-payment': cryptoPayment.remedies,
  'crypto-settlement': cryptoSettlement.remedies,
};
