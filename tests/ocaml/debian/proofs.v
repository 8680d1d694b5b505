(* A real file for coqc: some induction, some arithmetic, some computation. *)
Require Import List Arith Lia Permutation.
Import ListNotations.

Fixpoint insert (x : nat) (l : list nat) : list nat :=
  match l with
  | [] => [x]
  | y :: rest => if x <=? y then x :: l else y :: insert x rest
  end.

Fixpoint sort (l : list nat) : list nat :=
  match l with [] => [] | x :: rest => insert x (sort rest) end.

Inductive sorted : list nat -> Prop :=
| sorted_nil : sorted []
| sorted_one : forall x, sorted [x]
| sorted_more : forall x y l, x <= y -> sorted (y :: l) -> sorted (x :: y :: l).

Lemma insert_sorted : forall x l, sorted l -> sorted (insert x l).
Proof.
  induction 1; simpl.
  - constructor.
  - destruct (x <=? x0) eqn:E; constructor;
      try (apply Nat.leb_le in E); try (apply Nat.leb_gt in E); try lia; constructor.
  - simpl in IHsorted.
    destruct (x <=? x0) eqn:E.
    + apply Nat.leb_le in E. constructor; auto. constructor; auto.
    + apply Nat.leb_gt in E. destruct (x <=? y) eqn:F.
      * constructor; [lia | assumption].
      * constructor; [assumption | assumption].
Qed.

Theorem sort_sorted : forall l, sorted (sort l).
Proof. induction l; simpl; [constructor | now apply insert_sorted]. Qed.

Lemma insert_permutes : forall x l, Permutation (x :: l) (insert x l).
Proof.
  induction l; simpl; auto.
  destruct (x <=? a); auto.
  eapply perm_trans; [apply perm_swap | now constructor].
Qed.

Theorem sort_permutes : forall l, Permutation l (sort l).
Proof.
  induction l; simpl; auto.
  eapply perm_trans; [apply perm_skip; exact IHl | apply insert_permutes].
Qed.

Lemma linear : forall a b c d e : nat,
  a < b -> b + c <= d -> 2 * d < e -> a + c < e.
Proof. intros; lia. Qed.

Lemma cases : forall a b c : nat, a < 3 -> b < 3 -> c < 3 -> a * b * c <= 8.
Proof.
  intros a b c A B C.
  destruct a as [|[|[|a]]]; destruct b as [|[|[|b]]]; destruct c as [|[|[|c]]]; simpl; lia.
Qed.

Eval compute in sort [5; 3; 9; 1; 7; 2; 8; 6; 4; 0].
Eval vm_compute in length (sort (map (fun n => (n * 37) mod 101) (seq 0 100))).
