/** Texts of the workflows for operators. No other module of the docs loads workflows. */
import { ACTS as cryptoPaymentActs } from '../../workflows/crypto-payment/acts';
import { messages as cryptoPayment } from '../../workflows/crypto-payment/messages';
import { VIEW as cryptoPaymentView } from '../../workflows/crypto-payment/state';
import { ACTS as cryptoSettlementActs } from '../../workflows/crypto-settlement/acts';
import { messages as cryptoSettlement } from '../../workflows/crypto-settlement/messages';
import { VIEW as cryptoSettlementView } from '../../workflows/crypto-settlement/state';
import { ACTS as paymentActs } from '../../workflows/payment/acts';
import { messages as payment } from '../../workflows/payment/messages';
import { VIEW as paymentView } from '../../workflows/payment/state';
import { ACTS as payoutActs } from '../../workflows/payout/acts';
import { messages as payout } from '../../workflows/payout/messages';
import { VIEW as payoutView } from '../../workflows/payout/state';
import { ACTS as refundActs } from '../../workflows/refund/acts';
import { messages as refund } from '../../workflows/refund/messages';
import { VIEW as refundView } from '../../workflows/refund/state';

interface Texts {
  /** Remedy of each attention reason, as the page of a resource shows it. */
  remedies: Readonly<Record<string, string>>;
  /** States that allow each update. */
  acts: Readonly<Record<string, { from: readonly string[] }>>;
  /** Description of each message in the Temporal UI. */
  descriptions: Readonly<Record<string, string>>;
}

type Kind = 'payment' | 'refund' | 'payout' | 'crypto-payment' | 'crypto-settlement';

export const TEXTS: Readonly<Record<Kind, Texts>> = {
  payment: {
    remedies: paymentView.remedies,
    acts: paymentActs,
    descriptions: payment.descriptions,
  },
  refund: { remedies: refundView.remedies, acts: refundActs, descriptions: refund.descriptions },
  payout: { remedies: payoutView.remedies, acts: payoutActs, descriptions: payout.descriptions },
  'crypto-payment': {
    remedies: cryptoPaymentView.remedies,
    acts: cryptoPaymentActs,
    descriptions: cryptoPayment.descriptions,
  },
  'crypto-settlement': {
    remedies: cryptoSettlementView.remedies,
    acts: cryptoSettlementActs,
    descriptions: cryptoSettlement.descriptions,
  },
};
