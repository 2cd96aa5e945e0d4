/**
 * Source of the translations, which must have each placeholder in braces. Values are inserted as
 * they are, so no text may need them inflected.
 */
export const en = {
  name: 'English',
  frame: {
    language: 'Language',
    secure: 'Secure payment page.',
    secureOnce: 'Secure payment page. This link works once.',
    backToShop: 'Back to the shop',
    backTo: 'Back to {merchant}',
    reference: 'Reference',
  },
  pay: {
    sandbox: 'Sandbox: this is a test, no money moves.',
    title: 'Pay {amount} to {merchant}',
    summary: '{amount} to {merchant}',
    amount: 'Amount to pay',
    method: 'Pay with',
    payBy: 'Pay by',
    cancel: 'Cancel payment',
    cancelBusy: 'Cancelling…',
  },
  method: {
    continue: 'Continue to {method}',
    opening: 'Opening {method}',
    openingBusy: 'Opening {method}…',
  },
  bank: {
    name: 'your bank',
    continue: 'Continue to your bank',
    opening: 'Opening your bank',
    openingBusy: 'Opening your bank…',
  },
  wait: {
    progress: 'Waiting',
    opening: 'The bank is preparing your payment. You will be taken there.',
    openingLater: 'This takes longer than usual. Please stay here.',
    title: 'Waiting for the bank’s answer',
    answer: 'This page goes on by itself as soon as the bank answers.',
    answerLater: 'No answer yet. If you haven’t paid, go back to the bank or cancel the payment.',
    backToBank: 'Back to the bank',
  },
  transfer: {
    show: 'Show the bank details',
    title: 'Pay by bank transfer',
    holder: 'Account holder',
    reference: 'Reference for the transfer',
    copy: 'Copy',
    exactly:
      'Transfer exactly this amount, and enter the reference as the text of the transfer. Without ' +
      'it the shop cannot see what you have paid.',
    confirmed:
      'Your payment is confirmed when the transfer arrives, usually on the next business day. ' +
      'You can close this page: we notify the shop.',
    sent: 'Once you have sent the transfer, do not cancel the payment.',
  },
  outcome: {
    open: 'This payment is open',
    paid: 'You have paid',
    failed: 'The payment did not go through',
    cancelled: 'The payment was cancelled',
    expired: 'This payment has expired',
  },
  /** Notices name neither shop nor amount. */
  notice: {
    unknown: {
      title: 'There is no such payment',
      text: 'The link may be incomplete. Go back to the shop and start the payment again.',
    },
    taken: {
      title: 'This link was used already',
      text:
        'A payment link works once, in the browser that opened it first. Continue there, or go ' +
        'back to the shop and start again.',
    },
    expired: {
      title: 'This payment link has expired',
      text:
        'It can no longer be paid here. If you have just paid, do not pay again: the shop hears ' +
        'from the bank. Otherwise go back to the shop and start again.',
    },
    ended: {
      title: 'This payment is closed',
      text: 'The link no longer works. Go back to the shop to see your order.',
    },
    foreign: {
      title: 'That did not come from this page',
      text: 'Open the payment link again and use the buttons on the page.',
    },
    done: {
      title: 'You can close this page',
      text: 'The shop hears from the bank by itself. Your order there shows whether it is paid.',
    },
    trouble: {
      title: 'We can’t show this right now',
      text: 'The trouble is on our side. Please try again in a moment; you can’t pay twice.',
    },
  },
  crypto: {
    sandbox: 'Sandbox: this is a test, send no real funds.',
    sendExactly: 'Send exactly',
    stillToSend: 'Still to send',
    qrCode: 'QR code for a wallet: {asset} on {network}',
    addressCode:
      'The code is the address alone: choose {asset} on {network} in your wallet, and enter the amount.',
    amountCode: 'Code with the amount, which not every wallet reads',
    networkAddress: '{network} address',
    copyAmount: 'Copy amount',
    copyAddress: 'Copy address',
    copied: 'Copied',
    amountCopied: 'Amount copied',
    addressCopied: 'Address copied',
    selectToCopy: 'Press the amount or the address once to select all of it, then copy it.',
    openWallet: 'Open in wallet',
    onlyThisAsset:
      'Send only {asset} on the {network} network. Anything else may be lost. The fee of the ' +
      'network comes on top.',
    timeLeft: 'Time left',
    price: 'Price',
    amountDue: 'Amount due',
    cameSoFar: 'Came so far',
    surplus: 'You sent {amount} more than was due. The shop sees it: ask there to have it back.',
    playPayer: 'Play the payer',
    deposits: 'What came',
    confirmations: 'Confirmations',
    confirmationsOf: '{count} of {required} confirmations',
    confirmed: 'Confirmed',
    heldLate: 'Came too late: ask the shop',
    held: 'Being checked',
    rejected: 'Not accepted: ask the shop',
  },
  stage: {
    top_up: {
      title: 'Part of the amount is here',
      text: 'Send the rest to the same address before the time is over. You need not start again.',
    },
    confirming: {
      title: 'Your payment is being confirmed',
      text: 'You can close this page: we notify the shop.',
    },
    received: {
      title: 'Payment received',
      text: 'The shop has been notified. You can close this page.',
    },
    short: {
      title: 'Too little came in time',
      text:
        'Please send nothing more. Your money is not lost: ask the shop, which can accept or ' +
        'return it.',
    },
    held: {
      title: 'Your payment is being checked',
      text: 'Please do not pay again. A person looks at it, and the shop hears the outcome.',
    },
    expired: {
      title: 'The time to pay is over',
      text:
        'Please send nothing to this address any more. If you have just paid, do not pay again: ' +
        'nothing is lost, and the shop can help you. Otherwise start again in the shop.',
    },
  },
} as const;
