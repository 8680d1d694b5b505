(* Blocks of all kinds, held by definitions: prints how many words each of them reaches, and works until a
   file exists. FILE.ready is there when everything is.

   heap FILE CELLS     with a list of so many cells *)

let known : (int * string * Obj.t) list ref = ref []

let def line name v =
  known := (line, name, Obj.repr v) :: !known;
  v

type node = { mutable next : node option; name : string }

module Pair (X : sig val n : int end) = struct
  let held = List.init X.n (fun i -> Some (float_of_int i))
end

let cells = int_of_string Sys.argv.(2)
let list = def __LINE__ "list" (List.init cells (fun i -> i))
let strings = def __LINE__ "strings" (Array.init 1000 (fun i -> String.make (i mod 50) 'x'))
let floats = def __LINE__ "floats" (Array.init 1000 float_of_int)
let table : (int, string) Hashtbl.t = def __LINE__ "table" (Hashtbl.create 16)
let () = for i = 1 to 5000 do Hashtbl.replace table i (string_of_int i) done
let boxed = def __LINE__ "boxed" (Array.init 100 (fun i -> (Int64.of_int i, Int32.of_int i)))
let cycle = def __LINE__ "cycle" (let a = { next = None; name = "a" ^ Sys.argv.(2) } in let b = { next = Some a; name = "b" } in a.next <- Some b; a)

(* Two functions in one block, of which the second is referred to. *)
let make n = let rec even i = i = n || odd (i - 1) and odd i = i <> n && even (i - 1) in odd
let closures = def __LINE__ "closures" (Array.init 100 make)
let unforced = def __LINE__ "unforced" (Array.init 10 (fun i -> lazy (String.make i 'l')))
let forced = def __LINE__ "forced" (Array.init 10 (fun i -> let l = lazy (Some i) in ignore (Lazy.force l); l))
let objects = def __LINE__ "objects" (Array.init 10 (fun i -> object val v = string_of_int i method v = v end))
let variants = def __LINE__ "variants" (List.init 100 (fun i -> if i mod 2 = 0 then Ok (string_of_int i) else Error i))
let polymorphic = def __LINE__ "polymorphic" (List.init 100 (fun i -> `A (i, [ i ])))
let buffer = def __LINE__ "buffer" (Buffer.create 4096)
let () = Buffer.add_string buffer "some text"

module Held = Pair (struct let n = 200 end)

let functor_value = def __LINE__ "functor" Held.held

(* A definition within a module, whose last call is some lines below its first one. *)
module Nested = struct
  let numbers =
    let size = 10 in
    Array.init size
      string_of_int
end

(* What only weak references hold is not alive; data of an ephemeron is while its key is. *)
let weak : string Weak.t = def __LINE__ "weak" (Weak.create 10)
let () = Weak.set weak 0 (Some (String.make 100 'w'))
let () = Weak.set weak 1 (Some strings.(20))

module Ephemerons = Ephemeron.K1.Make (struct type t = string let equal = ( == ) let hash = Hashtbl.hash end)

let ephemerons : float array Ephemerons.t = Ephemerons.create 16
let keys = def __LINE__ "keys" (Array.init 20 (fun i -> "key" ^ string_of_int i))
let () = Array.iter (fun key -> Ephemerons.add ephemerons key (Array.make 100 1.)) keys
let () = Ephemerons.add ephemerons ("dead" ^ Sys.argv.(2)) (Array.make 5000 1.)

let bigarray = Bigarray.Array1.create Bigarray.float64 Bigarray.c_layout 10_000
let part = ref (Bigarray.Array1.sub bigarray 0 100)

let () =
  Gc.full_major ();
  Gc.full_major ();
  List.iter
    (fun (line, name, v) -> Printf.printf "%d %s %d\n" line name (Obj.reachable_words v))
    (List.rev !known);
  known := [];
  Gc.full_major ();
  Printf.printf "live %d\n%!" (Gc.stat ()).Gc.live_words;
  close_out (open_out (Sys.argv.(1) ^ ".ready"));
  let rec work sum =
    if Sys.file_exists Sys.argv.(1) then sum
    else work ((sum * 31) + List.length (List.init 1000 (fun i -> i)) land 0xffffff)
  in
  ignore (work 0);
  ignore (Sys.opaque_identity (list, floats, boxed, cycle, closures, unforced, forced, objects, variants));
  ignore (Sys.opaque_identity (polymorphic, functor_value, !part));
  print_endline "done"
