import type { Texts } from './texts';

export const de: Texts = {
  name: 'Deutsch',
  frame: {
    language: 'Sprache',
    secure: 'Sichere Zahlungsseite.',
    secureOnce: 'Sichere Zahlungsseite. Dieser Link gilt nur einmal.',
    backToShop: 'Zurück zum Shop',
    backTo: 'Zurück zu {merchant}',
    reference: 'Referenz',
  },
  pay: {
    sandbox: 'Sandbox: Dies ist ein Test, es fließt kein Geld.',
    title: '{amount} an {merchant} zahlen',
    summary: '{amount} an {merchant}',
    amount: 'Zu zahlender Betrag',
    method: 'Zahlen mit',
    payBy: 'Zahlbar bis',
    cancel: 'Zahlung abbrechen',
    cancelBusy: 'Wird abgebrochen…',
  },
  method: {
    continue: 'Weiter zu {method}',
    opening: '{method} wird geöffnet',
    openingBusy: '{method} wird geöffnet…',
  },
  bank: {
    name: 'Ihre Bank',
    continue: 'Weiter zu Ihrer Bank',
    opening: 'Ihre Bank wird geöffnet',
    openingBusy: 'Ihre Bank wird geöffnet…',
  },
  wait: {
    progress: 'Bitte warten',
    opening: 'Die Bank bereitet Ihre Zahlung vor. Sie werden gleich weitergeleitet.',
    openingLater: 'Das dauert länger als üblich. Bitte bleiben Sie auf dieser Seite.',
    title: 'Wir warten auf die Antwort der Bank',
    answer: 'Sobald die Bank antwortet, geht es hier von selbst weiter.',
    answerLater:
      'Noch keine Antwort. Wenn Sie nicht gezahlt haben, kehren Sie zur Bank zurück oder brechen ' +
      'Sie die Zahlung ab.',
    backToBank: 'Zurück zur Bank',
  },
  transfer: {
    show: 'Bankverbindung anzeigen',
    title: 'Per Überweisung zahlen',
    holder: 'Kontoinhaber',
    reference: 'Verwendungszweck',
    copy: 'Kopieren',
    exactly:
      'Überweisen Sie genau diesen Betrag und geben Sie den Verwendungszweck an. Ohne ihn kann ' +
      'der Shop nicht sehen, was Sie bezahlt haben.',
    confirmed:
      'Ihre Zahlung ist bestätigt, sobald die Überweisung eingeht, meist am nächsten ' +
      'Geschäftstag. Sie können diese Seite schließen: Wir benachrichtigen den Shop.',
    sent: 'Wenn Sie die Überweisung gesendet haben, brechen Sie die Zahlung bitte nicht mehr ab.',
  },
  outcome: {
    open: 'Diese Zahlung ist noch offen',
    paid: 'Sie haben bezahlt',
    failed: 'Die Zahlung ist fehlgeschlagen',
    cancelled: 'Die Zahlung wurde abgebrochen',
    expired: 'Diese Zahlung ist abgelaufen',
  },
  notice: {
    unknown: {
      title: 'Diese Zahlung gibt es nicht',
      text:
        'Der Link ist möglicherweise unvollständig. Kehren Sie zum Shop zurück und beginnen Sie ' +
        'die Zahlung noch einmal.',
    },
    taken: {
      title: 'Dieser Link wurde bereits benutzt',
      text:
        'Ein Zahlungslink gilt nur einmal, in dem Browser, in dem er zuerst geöffnet wurde. ' +
        'Machen Sie dort weiter oder beginnen Sie im Shop noch einmal.',
    },
    expired: {
      title: 'Dieser Zahlungslink ist abgelaufen',
      text:
        'Hier kann nicht mehr gezahlt werden. Wenn Sie gerade gezahlt haben, zahlen Sie bitte ' +
        'nicht noch einmal: Die Bank benachrichtigt den Shop. Andernfalls beginnen Sie im Shop ' +
        'noch einmal.',
    },
    ended: {
      title: 'Diese Zahlung ist abgeschlossen',
      text: 'Der Link gilt nicht mehr. Ihre Bestellung finden Sie im Shop.',
    },
    foreign: {
      title: 'Diese Anfrage kam nicht von unserer Seite',
      text: 'Öffnen Sie den Zahlungslink noch einmal und benutzen Sie die Schaltflächen der Seite.',
    },
    done: {
      title: 'Sie können diese Seite schließen',
      text:
        'Die Bank benachrichtigt den Shop von selbst. Dort sehen Sie an Ihrer Bestellung, ob sie ' +
        'bezahlt ist.',
    },
    trouble: {
      title: 'Diese Seite ist gerade nicht verfügbar',
      text:
        'Der Fehler liegt bei uns. Bitte versuchen Sie es gleich noch einmal; Sie können nicht ' +
        'doppelt zahlen.',
    },
  },
  crypto: {
    sandbox: 'Sandbox: Dies ist ein Test, senden Sie kein echtes Guthaben.',
    sendExactly: 'Senden Sie genau',
    stillToSend: 'Noch zu senden',
    qrCode: 'QR-Code für eine Wallet: {asset} auf {network}',
    addressCode:
      'Der Code enthält nur die Adresse: Wählen Sie in Ihrer Wallet {asset} auf {network} und geben Sie den Betrag ein.',
    amountCode: 'Code mit dem Betrag, den nicht jede Wallet liest',
    networkAddress: '{network}-Adresse',
    copyAmount: 'Betrag kopieren',
    copyAddress: 'Adresse kopieren',
    copied: 'Kopiert',
    amountCopied: 'Betrag kopiert',
    addressCopied: 'Adresse kopiert',
    selectToCopy:
      'Tippen Sie einmal auf den Betrag oder die Adresse, um alles auszuwählen, und kopieren Sie ' +
      'es dann.',
    openWallet: 'In der Wallet öffnen',
    onlyThisAsset:
      'Senden Sie nur {asset} im Netzwerk {network}. Alles andere kann verloren gehen. Die ' +
      'Netzwerkgebühr kommt hinzu.',
    timeLeft: 'Verbleibende Zeit',
    price: 'Preis',
    amountDue: 'Fälliger Betrag',
    cameSoFar: 'Bisher eingegangen',
    surplus:
      'Sie haben {amount} mehr gesendet, als fällig war. Der Shop sieht das: Bitten Sie dort um ' +
      'die Rückzahlung.',
    playPayer: 'Zahlung simulieren',
    deposits: 'Eingegangen',
    confirmations: 'Bestätigungen',
    confirmationsOf: '{count} von {required} Bestätigungen',
    confirmed: 'Bestätigt',
    heldLate: 'Zu spät eingegangen: Fragen Sie den Shop',
    held: 'Wird geprüft',
    rejected: 'Nicht angenommen: Fragen Sie den Shop',
  },
  stage: {
    top_up: {
      title: 'Ein Teil des Betrags ist eingegangen',
      text:
        'Senden Sie den Rest an dieselbe Adresse, bevor die Zeit abläuft. Sie müssen nicht von ' +
        'vorn beginnen.',
    },
    confirming: {
      title: 'Ihre Zahlung wird bestätigt',
      text: 'Sie können diese Seite schließen: Wir benachrichtigen den Shop.',
    },
    received: {
      title: 'Zahlung eingegangen',
      text: 'Der Shop ist benachrichtigt. Sie können diese Seite schließen.',
    },
    short: {
      title: 'Es ist nicht rechtzeitig genug eingegangen',
      text:
        'Bitte senden Sie nichts mehr. Ihr Geld ist nicht verloren: Wenden Sie sich an den Shop, ' +
        'der es annehmen oder zurückgeben kann.',
    },
    held: {
      title: 'Ihre Zahlung wird geprüft',
      text:
        'Bitte zahlen Sie nicht noch einmal. Wir prüfen sie persönlich, und der Shop erfährt das ' +
        'Ergebnis.',
    },
    expired: {
      title: 'Die Zeit zum Zahlen ist abgelaufen',
      text:
        'Bitte senden Sie nichts mehr an diese Adresse. Wenn Sie gerade gezahlt haben, zahlen Sie ' +
        'nicht noch einmal: Es ist nichts verloren, und der Shop kann Ihnen helfen. Andernfalls ' +
        'beginnen Sie im Shop noch einmal.',
    },
  },
};
