(* Domains that come and go, of which each promotes something and one asks for whole collections, unless there is an argument: while
   they are finished, the runtime writes a hundred thousand events. Tells how many words all allocated. *)

type tree = Leaf | Node of tree * int * tree

let rec build depth = if depth = 0 then Leaf else Node (build (depth - 1), depth, build (depth - 1))
let rec burn n acc = if n = 0 then acc else burn (n - 1) (string_of_int n :: acc)

let work share =
  let before = Gc.minor_words () in
  let kept = ref [] in
  for n = 1 to share * 40 do
    if n mod 10 = 0 then kept := build 12 :: (if n mod 60 = 0 then [] else !kept);
    ignore (Sys.opaque_identity (burn 1_000 []))
  done;
  ignore (Sys.opaque_identity !kept);
  Gc.minor_words () -. before

(* A domain that ends before the next one begins leaves it its number: they begin together. *)
let together there share =
  Atomic.incr there;
  while Atomic.get there < 3 do
    Domain.cpu_relax ()
  done;
  work share

let () =
  let words = ref 0. in
  for _ = 1 to 3 do
    let there = Atomic.make 0 in
    let others = List.map (fun share -> Domain.spawn (fun () -> together there share)) [ 2; 3 ] in
    words := !words +. together there 1;
    if Array.length Sys.argv = 1 then Gc.full_major ();
    List.iter (fun domain -> words := !words +. Domain.join domain) others
  done;
  Printf.eprintf "truth: words %.0f\n" !words;
  print_endline "done"
