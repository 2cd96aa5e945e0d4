import type { Texts } from './texts';

export const fr: Texts = {
  name: 'Français',
  frame: {
    language: 'Langue',
    secure: 'Page de paiement sécurisée.',
    secureOnce: 'Page de paiement sécurisée. Ce lien n’est valable qu’une fois.',
    backToShop: 'Retour à la boutique',
    backTo: 'Retour à {merchant}',
    reference: 'Référence',
  },
  pay: {
    sandbox: 'Environnement de test\u00a0: aucune somme n’est débitée.',
    title: 'Payer {amount} à {merchant}',
    summary: '{amount} à {merchant}',
    amount: 'Montant à payer',
    method: 'Moyen de paiement',
    payBy: 'À payer avant le',
    cancel: 'Annuler le paiement',
    cancelBusy: 'Annulation en cours…',
  },
  method: {
    continue: 'Continuer vers {method}',
    opening: 'Ouverture de {method}',
    openingBusy: 'Ouverture de {method}…',
  },
  bank: {
    name: 'votre banque',
    continue: 'Continuer vers votre banque',
    opening: 'Ouverture du site de votre banque',
    openingBusy: 'Ouverture du site de votre banque…',
  },
  wait: {
    progress: 'Veuillez patienter',
    opening: 'La banque prépare votre paiement. Vous allez être redirigé vers son site.',
    openingLater: 'Cela prend plus de temps que d’habitude. Veuillez rester sur cette page.',
    title: 'En attente de la réponse de la banque',
    answer: 'Cette page se poursuit d’elle-même dès que la banque répond.',
    answerLater:
      'Pas encore de réponse. Si vous n’avez pas payé, retournez sur le site de la banque ou ' +
      'annulez le paiement.',
    backToBank: 'Retour à la banque',
  },
  transfer: {
    show: 'Afficher les coordonnées bancaires',
    title: 'Payer par virement',
    holder: 'Titulaire du compte',
    reference: 'Motif du virement',
    copy: 'Copier',
    exactly:
      'Virez exactement ce montant et indiquez ce motif. Sans lui, la boutique ne peut pas ' +
      'savoir ce que vous avez payé.',
    confirmed:
      'Le paiement est confirmé à la réception du virement, en général le jour ouvré suivant. ' +
      'Vous pouvez fermer cette page\u00a0: nous prévenons la boutique.',
    sent: 'Une fois le virement envoyé, n’annulez pas le paiement.',
  },
  outcome: {
    open: 'Ce paiement est en cours',
    paid: 'Vous avez payé',
    failed: 'Le paiement n’a pas abouti',
    cancelled: 'Le paiement a été annulé',
    expired: 'Ce paiement a expiré',
  },
  notice: {
    unknown: {
      title: 'Ce paiement n’existe pas',
      text: 'Le lien est peut-être incomplet. Retournez à la boutique et recommencez le paiement.',
    },
    taken: {
      title: 'Ce lien a déjà été utilisé',
      text:
        'Un lien de paiement n’est valable qu’une fois, dans le navigateur qui l’a ouvert en ' +
        'premier. Continuez dans celui-ci ou recommencez depuis la boutique.',
    },
    expired: {
      title: 'Ce lien de paiement a expiré',
      text:
        'Il n’est plus possible de payer ici. Si vous venez de payer, ne payez pas une seconde ' +
        'fois\u00a0: la banque informe la boutique. Sinon, recommencez depuis la boutique.',
    },
    ended: {
      title: 'Ce paiement est clos',
      text: 'Le lien n’est plus valable. Retournez à la boutique pour voir votre commande.',
    },
    foreign: {
      title: 'Cette demande ne vient pas de cette page',
      text: 'Ouvrez de nouveau le lien de paiement et utilisez les boutons de la page.',
    },
    done: {
      title: 'Vous pouvez fermer cette page',
      text:
        'La banque informe elle-même la boutique. Votre commande y indique si le paiement a été ' +
        'reçu.',
    },
    trouble: {
      title: 'Cette page est momentanément indisponible',
      text:
        'Le problème vient de notre côté. Veuillez réessayer dans un instant\u00a0; vous ne pouvez pas ' +
        'payer deux fois.',
    },
  },
  crypto: {
    sandbox: 'Environnement de test\u00a0: n’envoyez pas de fonds réels.',
    sendExactly: 'Envoyez exactement',
    stillToSend: 'Reste à envoyer',
    qrCode: 'Code QR pour un portefeuille\u00a0: {asset} sur {network}',
    addressCode:
      'Le code contient seulement l’adresse\u00a0: choisissez {asset} sur {network} dans votre portefeuille et saisissez le montant.',
    amountCode: 'Code avec le montant, que tous les portefeuilles ne lisent pas',
    networkAddress: 'Adresse {network}',
    copyAmount: 'Copier le montant',
    copyAddress: 'Copier l’adresse',
    copied: 'Copié',
    amountCopied: 'Montant copié',
    addressCopied: 'Adresse copiée',
    selectToCopy:
      'Appuyez une fois sur le montant ou l’adresse pour les sélectionner en entier, puis ' +
      'copiez-les.',
    openWallet: 'Ouvrir dans le portefeuille',
    onlyThisAsset:
      'Envoyez uniquement des {asset} sur le réseau {network}. Tout autre envoi peut être perdu. ' +
      'Les frais de réseau s’y ajoutent.',
    timeLeft: 'Temps restant',
    price: 'Prix',
    amountDue: 'Montant dû',
    cameSoFar: 'Déjà reçu',
    surplus:
      'Vous avez envoyé {amount} de trop. La boutique le voit\u00a0: demandez-lui le remboursement.',
    playPayer: 'Simuler le paiement',
    deposits: 'Fonds reçus',
    confirmations: 'Confirmations du réseau',
    confirmationsOf: '{count} confirmations sur {required}',
    confirmed: 'Confirmé',
    heldLate: 'Arrivé trop tard\u00a0: contactez la boutique',
    held: 'En cours de vérification',
    rejected: 'Non accepté\u00a0: contactez la boutique',
  },
  stage: {
    top_up: {
      title: 'Une partie du montant est arrivée',
      text:
        'Envoyez le reste à la même adresse avant la fin du délai. Vous n’avez pas besoin de ' +
        'recommencer.',
    },
    confirming: {
      title: 'Votre paiement est en cours de confirmation',
      text: 'Vous pouvez fermer cette page\u00a0: nous informons la boutique.',
    },
    received: {
      title: 'Paiement reçu',
      text: 'La boutique a été informée. Vous pouvez fermer cette page.',
    },
    short: {
      title: 'Le montant reçu à temps est insuffisant',
      text:
        'N’envoyez plus rien. Votre argent n’est pas perdu\u00a0: contactez la boutique, qui peut ' +
        'l’accepter ou vous le rendre.',
    },
    held: {
      title: 'Votre paiement est en cours de vérification',
      text:
        'Ne payez pas une seconde fois. Une personne l’examine, et la boutique sera informée du ' +
        'résultat.',
    },
    expired: {
      title: 'Le délai de paiement est écoulé',
      text:
        'N’envoyez plus rien à cette adresse. Si vous venez de payer, ne payez pas une seconde ' +
        'fois\u00a0: rien n’est perdu, et la boutique peut vous aider. Sinon, recommencez depuis la ' +
        'boutique.',
    },
  },
};
